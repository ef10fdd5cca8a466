// Presets: their files, and requests over each wire.
#include "net/preset_files.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::preset_files_test {

using namespace weir::net;

namespace {

std::string refused_file(const std::string& text) {
  temporary_dir dir;
  write_file(dir / "p.json", text);
  const auto read = read_presets({"p=" + dir / "p.json"});
  if (read) return "";
  CHECK(read.error().code == core::errc::invalid_param);
  CHECK(read.error().param == "preset");
  CHECK_THAT(read.error().message, Catch::Contains("p.json"));
  return read.error().message;
}

// `odd` has a token that the simulated model does not have, so that a request that takes it is refused.
server_options with_presets() {
  server_options o;
  o.presets["fine"].temperature = 0.5;
  o.presets["odd"].logit_bias = {{99'999'999, 1.0}};
  return o;
}

// The bodies of each route, without their last bracket.
constexpr struct {
  const char *path, *body;
} routes[] = {
    {"/v1/completions", R"({"prompt":"hi","max_tokens":3)"},
    {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":3)"},
    {"/v1/messages", R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":3)"},
    {"/v1/responses", R"({"input":"hi","max_output_tokens":3)"},
};

}  // namespace

TEST_CASE("preset files: fields under their names, and under those of other servers") {
  const auto read =
      read_preset(R"({"temperature":0.5,"repeat_penalty":1.1,"mirostat":false,"stop":null,"top_k":null,)"
                  R"("dynamic_temperature":true,"dynatemp_low":0.5,"dynatemp_high":1.5,"guidance_scale":1})");
  REQUIRE_FALSE(read.has_value());  // `stop` is no sampling field, whatever its value
  CHECK(read.error().param == "stop");
  const auto fields = read_preset(
      R"({"temperature":0.5,"repeat_penalty":1.1,"mirostat":false,"top_k":null,"custom_token_bans":"5,17",)"
      R"("dynamic_temperature":true,"dynatemp_low":0.5,"dynatemp_high":1.5,"guidance_scale":1,)"
      R"("banned_strings":["As an AI"],"token_healing":true})");
  REQUIRE(fields.has_value());
  CHECK(fields->banned_strings == std::vector<std::string>{"As an AI"});
  CHECK(fields->token_healing == true);
  CHECK(fields->temperature == 1.0);
  CHECK(fields->dynatemp_range == 0.5);
  CHECK(fields->repetition_penalty == 1.1);
  CHECK(fields->mirostat_mode == 0);
  CHECK_FALSE(fields->top_k.has_value());
  CHECK(fields->disallow_tokens == std::vector<std::int64_t>{5, 17});
  CHECK(read_preset("{}").has_value());
}

TEST_CASE("preset files: a fault names the file and the field") {
  const struct {
    const char *text, *says;
  } rows[] = {
      {R"({"temperature":3})", "temperature must be in [0, 2], not 3"},
      {R"({"temperature":"hot"})", "temperature must be a number"},
      {R"({"repeat_penalty":1.1,"repetition_penalty":1.2})", "under two names"},
      {R"({"temprature":1})", "unknown field 'temprature'"},
      {R"({"max_tokens":5})", "unknown field 'max_tokens'"},
      {R"({"preset":"p"})", "unknown field 'preset'"},
      {R"({"guidance_scale":2})", "guidance_scale is not supported yet"},
      {R"({"token_healing":1})", "token_healing must be true or false"},
      {R"({"banned_strings":[5]})", "banned_strings[0] must be a string"},
      {R"({"banned_strings":["fine",""]})", "a string of banned_strings must have 1 to 1024 bytes"},
      {R"({"dynamic_temperature":true})", "dynamic_temperature needs"},
      {R"({"disallow_tokens":[-1]})", "disallow_tokens: -1 is not a token id"},
      {R"([1])", "must be an object, not an array"},
      {R"({"top_k":)", "JSON"},
      {"", "JSON"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.text);
    CHECK_THAT(refused_file(r.text), Catch::Contains(r.says));
  }
  CHECK_THAT(refused_file(std::string(longest_preset + 1, ' ')), Catch::Contains("over 65536 bytes"));
  CHECK(refused_file("{}" + std::string(longest_preset - 2, ' ')).empty());
}

TEST_CASE("preset files: a bad name, a name twice and a file that cannot be read are refused") {
  temporary_dir dir;
  const std::string file = dir / "p.json";
  write_file(file, R"({"top_k":5})");
  const auto says = [](const std::vector<std::string>& named) {
    const auto read = read_presets(named);
    if (read) return std::string();
    CHECK(read.error().param == "preset");
    return read.error().message;
  };
  CHECK_THAT(says({file}), Catch::Contains("NAME=FILE is wanted"));
  CHECK_THAT(says({"a="}), Catch::Contains("NAME=FILE is wanted"));
  CHECK_THAT(says({"=" + file}), Catch::Contains("a name has"));
  CHECK_THAT(says({"a b=" + file}), Catch::Contains("a name has"));
  CHECK_THAT(says({std::string(longest_preset_name + 1, 'a') + "=" + file}), Catch::Contains("a name has"));
  CHECK_THAT(says({"a=" + file, "a=" + file}), Catch::Contains("'a' is a preset already"));
  CHECK_THAT(says({"a=" + dir / "absent"}), Catch::Contains("absent: cannot be read: "));
  CHECK_THAT(says({"a=" + dir.path().string()}), Catch::Contains("cannot be read: "));
  const auto both = read_presets({"a=" + file, "b-2.x_=" + file});
  REQUIRE(both.has_value());
  CHECK(both->size() == 2);
  CHECK(both->at("a").top_k == 5);
}

TEST_CASE("presets: over each route a known one is taken, and an unknown one is refused by name") {
  server_fixture f(with_presets());
  http_client c(f.port());
  for (const auto& r : routes) {
    CAPTURE(r.path);
    const auto post = [&](const std::string& fields) { return c.post(r.path, r.body + fields + "}"); };
    CHECK(post(R"(,"preset":"fine")").status == 200);
    CHECK(post(R"(,"preset":null)").status == 200);
    const auto unknown = post(R"(,"preset":"poem")");
    CHECK(unknown.status == 400);
    CHECK_THAT(unknown.text, Catch::Contains("'poem'; there are fine, odd"));
    const auto odd = post(R"(,"preset":"odd")");
    CHECK(odd.status == 400);
    CHECK_THAT(odd.text, Catch::Contains("logit_bias"));
    CHECK(post(R"(,"preset":"odd","logit_bias":{"1":1})").status == 200);
    CHECK(post(R"(,"preset":"odd","logit_bias":{})").status == 200);
    CHECK(post(R"(,"preset":5)").status == 400);
  }
  constexpr auto count = "/v1/messages/count_tokens";
  const std::string counted = R"({"messages":[{"role":"user","content":"hi"}],"preset":)";
  CHECK(c.post(count, counted + R"("fine"})").status == 200);
  const auto uncounted = c.post(count, counted + R"("poem"})");
  CHECK(uncounted.status == 400);
  CHECK_THAT(uncounted.text, Catch::Contains("'poem'; there are fine, odd"));
  const auto unknown = c.post(routes[1].path, std::string(routes[1].body) + R"(,"preset":"poem"})");
  CHECK(unknown.error().at("param") == "preset");
  CHECK(unknown.error().at("code") == "invalid_param");
}

TEST_CASE("presets: over weir.v1 a known one is taken, and an unknown one is refused by name") {
  server_fixture f(with_presets());
  ws_client c(f.port());
  c.read("session.created");
  c.send(create("a", R"("max_tokens":3,"preset":"fine")"));
  CHECK(read_lane(c).done);
  c.send(create("b", R"("max_tokens":3,"preset":"poem")"));
  const auto unknown = c.read("error");
  CHECK(unknown.at("code") == "invalid_param");
  CHECK(unknown.at("param") == "preset");
  c.send(create("c", R"("max_tokens":3,"preset":"odd")"));
  CHECK(c.read("error").at("param") == "logit_bias");
  c.send(create("d", R"("max_tokens":3,"preset":"odd","logit_bias":{})"));
  CHECK(read_lane(c).done);
}

TEST_CASE("presets: without any, each name is refused, and the list of models has none") {
  server_fixture f;
  http_client c(f.port());
  const auto no = c.post("/v1/completions", R"({"prompt":"hi","preset":"fine"})");
  CHECK(no.status == 400);
  CHECK(no.error().at("param") == "preset");
  CHECK_THAT(no.text, Catch::Contains("'fine'; there are no presets"));
  CHECK_FALSE(c.get("/v1/models").json().as_object().contains("presets"));
  server_fixture with(with_presets());
  http_client other(with.port());
  CHECK(other.get("/v1/models").json().at("presets") == boost::json::parse(R"(["fine","odd"])"));
}

}  // namespace weir::tests::preset_files_test
