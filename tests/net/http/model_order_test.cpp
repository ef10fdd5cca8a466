// Which sources an order may name, and how its failures are told.
#include "net/http/model_order.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace weir::tests::model_order_test {
namespace {

using namespace weir::net;
using core::errc;
namespace fs = std::filesystem;

struct directory {
  directory() {
    std::string made = (fs::temp_directory_path() / "weir-order-XXXXXX").string();
    REQUIRE(::mkdtemp(made.data()));
    path = fs::canonical(made);
    fs::create_directories(path / "models" / "fine");
    fs::create_directories(path / "secret");
    fs::create_directory_symlink(path / "secret", path / "models" / "leak");
  }
  ~directory() { fs::remove_all(path); }
  fs::path path;
};

actors::model_status known(std::string name, std::string source) {
  actors::model_status m;
  m.name = std::move(name);
  m.source = std::move(source);
  return m;
}

model_order load(std::string name, std::string source) {
  model_order o;
  o.in.spec.name = std::move(name);
  o.in.spec.source = std::move(source);
  return o;
}

}  // namespace

TEST_CASE("model order: sources are settled by what the server knows and what the client may") {
  const directory d;
  const std::string models = (d.path / "models").string(), secret = (d.path / "secret").string();
  const std::vector<actors::model_status> list{known("rill", "/start/rill"), known("gone", "/start/gone")};
  const source_rules rules{models, false, list}, admin{models, true, list}, bare{"", false, list};
  const struct {
    const char *name, *source;
    const source_rules& by;
    unsigned status;      // 0: it is settled
    std::string becomes;  // the source then, or the code of the refusal
  } rows[] = {
      {"gone", "", rules, 0, ""},
      {"fine", "", rules, 0, models + "/fine"},
      {"none", "", rules, 404, "model_not_found"},
      {"none", "", bare, 404, "model_not_found"},
      {"../secret", "", admin, 404, "model_not_found"},
      {"x", "rill", bare, 0, "/start/rill"},
      {"x", "/start/rill", bare, 0, "/start/rill"},
      {"x", "random:tiny", bare, 0, "random:tiny"},
      {"x", "sim:rate=1", bare, 0, "sim:rate=1"},
      {"x", "fine", rules, 0, models + "/fine"},
      {"x", "fine", bare, 403, "source_forbidden"},
      {"x", "missing", rules, 422, "bad_file"},
      {"x", "leak", rules, 422, "bad_file"},
      {"x", "../secret", rules, 403, "source_forbidden"},
      {"x", secret.c_str(), rules, 403, "source_forbidden"},
      {"x", "/etc/passwd", bare, 403, "source_forbidden"},
      {"x", secret.c_str(), admin, 0, secret},
      {"x", "/no/such", admin, 422, "bad_file"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.name, r.source, r.status);
    auto o = load(r.name, r.source);
    const auto no = settle_source(o, r.by);
    CHECK((no ? no->status : 0) == r.status);
    CHECK((no ? std::string(no->code) : o.in.spec.source) == r.becomes);
  }
}

TEST_CASE("model order: the file system is asked where a name alone does not decide") {
  const source_rules rules{"/models", false, {known("rill", "/start/rill")}}, bare{"", false, {}};
  CHECK_FALSE(reads_files(load("rill", ""), rules));
  CHECK_FALSE(reads_files(load("x", "rill"), rules));
  CHECK_FALSE(reads_files(load("x", "sim"), rules));
  CHECK_FALSE(reads_files(load("none", ""), bare));
  CHECK(reads_files(load("none", ""), rules));
  CHECK(reads_files(load("x", "other"), rules));
  model_order away;
  away.is = model_order::kind::unload;
  CHECK_FALSE(reads_files(away, rules));
}

TEST_CASE("model order: each failure has a status, a code and what belongs to it") {
  const struct {
    errc code;
    unsigned status;
    const char* says;
  } rows[] = {{errc::busy, 409, "busy"},
              {errc::already_there, 409, "already_there"},
              {errc::model_not_found, 404, "model_not_found"},
              {errc::bad_file, 422, "bad_file"},
              {errc::not_supported, 422, "not_supported"},
              {errc::does_not_fit, 422, "does_not_fit"},
              {errc::invalid_param, 400, "invalid_param"},
              {errc::unavailable, 503, "unavailable"},
              {errc::overloaded, 503, "unavailable"},
              {errc::internal, 500, "internal"}};
  for (const auto& r : rows) {
    CAPTURE(r.says);
    const auto no = failed_order({core::make_error(r.code, "words"), ""});
    CHECK(no.status == r.status);
    CHECK(no.code == r.says);
    CHECK(boost::json::parse(no.body).at("error").at("message") == "words");
  }
  auto busy = core::make_error(errc::busy, "words");
  busy.retry_after_ms = 2500;
  const auto later = failed_order({busy, ""});
  REQUIRE(later.headers.size() == 1);
  CHECK(later.headers[0] == std::pair<std::string, std::string>("Retry-After", "3"));
  const auto full = failed_order({core::make_error(errc::does_not_fit, "words"), R"({"fits":false})"});
  CHECK(boost::json::parse(full.body).at("error").at("plan").at("fits") == false);
  const auto path = failed_order({core::bad_param("model", "--model /x: there is no such file"), ""});
  CHECK(path.status == 422);
  CHECK(boost::json::parse(path.body).at("error").at("message") == "/x: there is no such file");
  CHECK(boost::json::parse(path.body).at("error").at("param") == "source");
}

}  // namespace weir::tests::model_order_test
