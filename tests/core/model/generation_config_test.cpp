#include "core/model/generation_config.h"

#include <catch2/catch.hpp>

namespace weir::tests::generation_config_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

result<generation_config> parse(std::string_view text) {
  model_config c;
  c.shape.vocab = 100;
  c.stop_ids = {7};
  c.bos = 5;
  return parse_generation_config(text, c, "generation_config.json");
}

}  // namespace

TEST_CASE("stop ids are generation_config.json's where it has them, else config.json's") {
  CHECK(parse("{}")->stop_ids == std::vector<token_id>{7});
  CHECK(parse(R"({"eos_token_id":null})")->stop_ids == std::vector<token_id>{7});
  CHECK(parse(R"({"eos_token_id":3})")->stop_ids == std::vector<token_id>{3});
  CHECK(parse(R"({"eos_token_id":[1,2]})")->stop_ids == std::vector<token_id>{1, 2});
  CHECK(parse("{}")->bos == 5);
  CHECK(parse(R"({"bos_token_id":6})")->bos == 6);
}

TEST_CASE("sampling defaults are neutral until the file says otherwise") {
  const auto neutral = parse("{}")->defaults;
  CHECK(neutral.temperature == 1);
  CHECK(neutral.top_k == 0);
  CHECK(neutral.top_p == 1);
  const auto set = parse(R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 20,
                             "min_p": 0.05, "repetition_penalty": 1.1})")
                       ->defaults;
  CHECK(set.temperature == 0.6f);
  CHECK(set.top_p == 0.9f);
  CHECK(set.top_k == 20);
  CHECK(set.min_p == 0.05f);
  CHECK(set.repetition_penalty == 1.1f);
  CHECK(parse(R"({"do_sample":false,"temperature":0.6})")->defaults.temperature == 0);
  CHECK(parse(R"({"temperature":0.0})")->defaults.temperature == 0);
  CHECK(parse(R"({"repetition_penalty":0.005})")->defaults.repetition_penalty == 0.005f);
  CHECK(parse(R"({"top_k":0})")->defaults.top_k == 0);
  CHECK(parse(R"({"top_k":-1})")->defaults.top_k == 0);
  CHECK(parse(R"({"top_k":16777216})")->defaults.top_k == 16777216);
}

TEST_CASE("a default or an id out of its range is refused by name") {
  for (const char* text :
       {R"({"temperature":-1})", R"({"temperature":2.5})", R"({"temperature":"hot"})", R"({"top_p":0})",
        R"({"top_p":1.5})", R"({"min_p":-0.5})", R"({"repetition_penalty":0})", R"({"top_k":-2})",
        R"({"top_k":1.5})", R"({"top_k":16777217})", R"({"repetition_penalty":2.5})",
        R"({"eos_token_id":100})", R"({"eos_token_id":-1})", R"({"eos_token_id":1.0})",
        R"({"bos_token_id":[100]})", R"({"do_sample":1})"}) {
    const auto r = parse(text);
    CAPTURE(text);
    REQUIRE(!r);
    const std::string key(std::string_view(text).substr(2, std::string_view(text).find('"', 2) - 2));
    CHECK_THAT(r.error().message, Contains("generation_config.json: '" + key + "'"));
  }
}

}  // namespace weir::tests::generation_config_test
