// Random answers that the masks allow: the reader of answers finds in each what the rules promise.
#include <catch2/catch.hpp>
#include <map>

#include "core/grammar/calls.h"
#include "tests/core/grammar/calls/calls_kit.h"
#include "tests/core/grammar/grammar_kit.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::calls_walks_test {
namespace {

using namespace weir::core::grammar;
using choice = core::tool_wishes::choice;

// Schemas with short texts, so that walks end.
std::vector<core::tool_definition> short_tools() {
  return {
      tool_of("look", R"({"type":"object","properties":{
          "place":{"type":"string","maxLength":3},
          "kind":{"enum":["a","b c","</x>",7,null]},
          "count":{"type":"integer","minimum":-5,"maximum":20},
          "sure":{"type":"boolean"},
          "any":{"type":["string","number","null"],"maxLength":3},
          "code":{"type":"string","pattern":"^[A-Z]{2}\\d$"},
          "list":{"type":"array","items":{"type":"string","maxLength":2},"maxItems":2},
          "deep":{"type":"object","properties":{"x y":{"type":"number"},"b":{"const":"true"}},
                  "required":["b"],"additionalProperties":false}},
        "required":["place","kind"],"additionalProperties":false})"),
      tool_of("tell", R"({"type":"object","properties":{},"additionalProperties":false})"),
      tool_of("refer", R"({"$defs":{"t":{"type":"string","maxLength":4},"l":{"type":"object",
          "properties":{"next":{"anyOf":[{"$ref":"#/$defs/l"},{"type":"null"}]}},"required":["next"],
          "additionalProperties":false}},
        "type":"object","properties":{"t":{"$ref":"#/$defs/t"},"l":{"$ref":"#/$defs/l"}},"required":["t"],
        "additionalProperties":{"type":"integer"}})"),
      tool_of("either", R"({"type":"object","anyOf":[
          {"properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},
          {"properties":{"b":{"type":"string","maxLength":2}},"required":["b"],"additionalProperties":false}]})"),
  };
}

void check_answer(const call_rules& r, const words_ptr& words, const std::vector<core::token_id>& ids,
                  std::map<std::string, schema_under_test>& schemas) {
  const auto read = read_back(r, words, ids);
  INFO(words->decode(ids, {}));
  CHECK(read.marks.warnings.empty());
  CHECK_FALSE(read.marks.calls.empty());
  for (std::size_t i = 0; i < read.marks.calls.size(); ++i) {
    const auto& call = read.marks.calls[i];
    INFO(call.name << read.arguments(i));
    CHECK(call.whole);
    const auto schema = schemas.find(call.name);
    REQUIRE(schema != schemas.end());
    boost::system::error_code failed;
    boost::json::parse(read.arguments(i), failed, {}, {.max_depth = 200});
    CHECK_FALSE(failed);
    CHECK(schema->second.accepts(read.arguments(i)));
  }
}

constexpr unsigned most_walks = 300;  // of which one has to come to its end

}  // namespace

TEST_CASE("calls: random answers of each format are read back as calls that follow the schemas",
          "[grammar]") {
  std::mt19937 random(drawn_seed(41));
  std::map<std::string, schema_under_test> schemas;
  for (const auto& t : short_tools()) schemas.emplace(t.name, schema_under_test(t.parameters, true));
  for (const auto& f : core::call_formats()) {
    auto rules = rules_for(std::string(f.name), choice::required, short_tools());
    int n = 0;
    for (const auto& words : vocabularies(rules)) {
      INFO(rules.format << ", vocabulary " << n++);
      std::vector<warning> warnings;
      const auto over = bound_answer(rules, words, &warnings);
      if (!over) FAIL(over.error().message);
      CHECK(warnings.empty());
      std::size_t whole = 0;
      for (unsigned i = 0; i < rounds(6) || (whole == 0 && i < most_walks); ++i) {
        const auto ids = random_answer(**over, random, 1'500);
        if (ids.empty()) continue;
        ++whole;
        check_answer(rules, words, ids, schemas);
      }
      CHECK(whole > 0);
    }
  }
}

TEST_CASE("calls: random answers with reasoning and text keep both apart from calls", "[grammar]") {
  std::mt19937 random(drawn_seed(42));
  std::map<std::string, schema_under_test> schemas;
  for (const auto& t : short_tools()) schemas.emplace(t.name, schema_under_test(t.parameters, true));
  for (const auto* format : {"hermes", "qwen-coder", "deepseek-v3.1", "mistral", "gemma", "harmony"}) {
    auto rules = rules_for(format, choice::required, short_tools());
    if (rules.messages == core::envelope::none) rules.reasoning = {"<think>\n", "\n</think>\n\n"};
    rules.begins_in_reasoning = rules.messages == core::envelope::none;
    rules.max_reasoning_tokens = 6;
    for (const auto& words : vocabularies(rules)) {
      INFO(format);
      const auto over = bound_answer(rules, words);
      if (!over) FAIL(over.error().message);
      for (unsigned i = 0; i < rounds(6); ++i) {
        const auto ids = random_answer(**over, random, 1'500);
        if (!ids.empty()) check_answer(rules, words, ids, schemas);
      }
    }
  }
}

TEST_CASE("calls: in random answers of a model that decides, each call that is made follows its schema",
          "[grammar]") {
  std::mt19937 random(drawn_seed(43));
  std::map<std::string, schema_under_test> schemas;
  for (const auto& t : short_tools()) schemas.emplace(t.name, schema_under_test(t.parameters, true));
  std::size_t calls = 0;
  for (const auto& f : core::call_formats()) {
    auto rules = rules_for(std::string(f.name), choice::automatic, short_tools());
    const auto words = vocabularies(rules)[1];
    const auto over = bound_answer(rules, words);
    if (!over) FAIL(over.error().message);
    for (unsigned i = 0; i < rounds(8); ++i) {
      const auto ids = random_answer(**over, random, 1'500);
      if (ids.empty()) continue;
      const auto read = read_back(rules, words, ids);
      if (read.marks.calls.empty()) continue;
      INFO(f.name);
      check_answer(rules, words, ids, schemas);
      ++calls;
    }
  }
  CHECK(calls > 0);
}

TEST_CASE("calls: masks over a vocabulary of many pieces are what their definition says", "[grammar]") {
  std::mt19937 random(drawn_seed(44));
  for (const auto* format : {"hermes", "qwen-coder", "gemma", "lfm2", "kimi", "llama3"}) {
    for (const auto how : {choice::required, choice::automatic}) {
      INFO(format);
      auto made = compile_answer(rules_for(format, how, short_tools()), &bundled_views()->trie().words());
      REQUIRE(made.has_value());
      const auto over = constraint::make(std::move(*made), bundled_views());
      REQUIRE(over.has_value());
      for (unsigned i = 0; i < rounds(8); ++i) CHECK(masks_are_exact(**over, random, 40));
    }
  }
}

TEST_CASE("calls: as many tools as a request may have", "[grammar]") {
  std::vector<core::tool_definition> tools;
  for (int i = 0; i < 2'000; ++i)
    tools.push_back(tool_of(fmt::format("f{}", i),
                            fmt::format(R"({{"type":"object","properties":{{"p{}":{{"type":"integer"}}}},
                                            "required":["p{}"]}})",
                                        i, i)));
  const auto words = bytes_and_marks({}, false);
  for (const auto* format : {"hermes", "gemma", "seed"}) {
    fuel budget({});
    const auto rules = rules_for(format, choice::required, tools);
    auto made = compile_answer(rules, words.get(), &budget);
    REQUIRE(made.has_value());
    const auto over = constraint::make(
        std::move(*made), std::make_shared<terminal_views>(std::make_shared<const token_trie>(words)));
    REQUIRE(over.has_value());
    std::mt19937 random(1);
    CHECK(masks_are_exact(**over, random, 60));
  }
}

}  // namespace weir::tests::calls_walks_test
