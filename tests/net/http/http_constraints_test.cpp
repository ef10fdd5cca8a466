// Constraints over HTTP and sockets: the answer fits, what is not enforced is told, what is wrong is refused.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <regex>

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/toy_directory.h"
#include "tests/support/ws_client.h"

namespace weir::tests::http_constraints_test {
namespace {

// A server of a model that computes, and has a token for every byte.
struct toy_server {
  static server_options of(const std::filesystem::path& dir) {
    server_options o;
    o.model_dir = dir.string();
    return o;
  }
  unsigned short port() const { return f.port(); }

  tests::temporary_dir dir;
  server_fixture f{of((tests::write_toy_directory(dir.path()), dir.path()))};
};

std::string text_of(const boost::json::value& answer) {
  return std::string(answer.at("choices").at(0).at("text").as_string());
}

std::string body_of(std::string_view fields, unsigned seed = 1) {
  return fmt::format(R"({{"prompt":"x","max_tokens":200,"seed":{},{}}})", seed, fields);
}

}  // namespace

TEST_CASE("constraints: answers fit, whatever is drawn") {
  toy_server f;
  http_client c(f.port());
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto whole = c.post("/v1/completions", body_of(R"("regex":"[a-c]{3}-[0-9]{1,4}")", seed)).json();
    CHECK(std::regex_match(text_of(whole), std::regex("[a-c]{3}-[0-9]{1,4}")));
    CHECK(whole.at("choices").at(0).at("finish_reason") == "stop");
    const auto one = text_of(c.post("/v1/completions", body_of(R"("choice":["yes","no"])", seed)).json());
    CHECK((one == "yes" || one == "no"));
    const auto grammar = text_of(
        c.post("/v1/completions", body_of(R"("grammar":"root ::= [a-b] root [a-b] | \"!\"")", seed)).json());
    CHECK(grammar.size() % 2 == 1);
  }
}

TEST_CASE("constraints: choices of a request share one, and each fits") {
  toy_server f;
  http_client c(f.port());
  const auto all = c.post("/v1/completions", body_of(R"("n":8,"regex":"[a-z]{5}")")).json();
  REQUIRE(all.at("choices").as_array().size() == 8);
  for (const auto& choice : all.at("choices").as_array())
    CHECK(std::regex_match(std::string(choice.at("text").as_string()), std::regex("[a-z]{5}")));
}

TEST_CASE("constraints: what is not enforced is told beside the usage, in a stream, and on a lane") {
  toy_server f;
  http_client c(f.port());
  const std::string schema = R"("json_schema":{"type":"string","maxLength":3,"format":"unheard-of"})";
  const auto told = [](const boost::json::value& warnings) {
    return warnings.at(0).at("param") == "/format" && !warnings.at(0).at("message").as_string().empty();
  };
  const auto whole = c.post("/v1/completions", body_of(schema)).json();
  CHECK(boost::json::parse(text_of(whole)).is_string());
  CHECK(told(whole.at("warnings")));

  const std::string stream = c.post("/v1/completions", body_of(schema + R"(,"stream":true)")).body();
  const auto first = stream.substr(6, stream.find("\n\n") - 6);
  CHECK(told(boost::json::parse(first).at("warnings")));
  CHECK(stream.find("warnings", first.size() + 6) == std::string::npos);

  ws_client ws(f.port());
  ws.send(R"({"type":"response.create","id":"a","input":"x","max_tokens":200,"seed":1,)" + schema + "}");
  const auto created = ws.read("response.created");
  CHECK(told(created.at("warnings")));
  CHECK(ws.read("response.done").at("finish_reason") == "stop");
  CHECK_FALSE(c.post("/v1/completions", body_of(R"("json_schema":{"enum":[7]})")).json().as_object().contains(
      "warnings"));
}

TEST_CASE("constraints: a schema's bytes do not count against a frame's bound, all others do") {
  toy_server f;
  const std::string many(300 * 1024, ' ');
  const auto create = [](const std::string& fields) {
    return R"({"type":"response.create","id":"a","input":"x","max_tokens":9,)" + fields + "}";
  };
  ws_client fits(f.port());
  fits.send(create(R"("json_schema":{"enum":[7],)" + many + R"("title":"t"})"));
  CHECK(fits.read("response.done").at("finish_reason") == "stop");
  const std::string too_large[] = {
      create(R"("json_schema":{"enum":[7]},)" + many + R"("seed":1)"),
      create(R"("metadata":{"json_schema":{)" + many + "}}"),
      create(R"("json_schema":{"enum":[7]}})" + many),
  };
  for (const auto& frame : too_large) {
    ws_client c(f.port());
    c.send(frame);
    CHECK(c.until_closed() == 1009);
  }
}

TEST_CASE("constraints: strict refuses what it cannot enforce, and says where") {
  toy_server f;
  http_client c(f.port());
  const auto a = c.post("/v1/completions", body_of(R"("response_format":{"type":"json_schema","json_schema":{
    "name":"n","strict":true,"schema":{"properties":{"a":{"$ref":"https://elsewhere/x"}}}}})"));
  CHECK(a.status == 400);
  CHECK(a.json().at("error").at("param") == "response_format.json_schema.schema/properties/a");

  ws_client ws(f.port());
  ws.send(R"({"type":"response.create","id":"a","input":"x","regex":"(a"})");
  const auto e = ws.read("error");
  CHECK(e.at("param") == "regex");
  ws.send(R"({"type":"response.create","id":"b","input":"x","max_tokens":4,"regex":"a"})");
  CHECK(ws.read("response.done").at("id") == "b");  // nothing is lost
}

}  // namespace weir::tests::http_constraints_test
