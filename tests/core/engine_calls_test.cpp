// Calls of tools through the engine: demanded calls with strict schemas behind reasoning that ends, in both
// loops, with late masks and beside other jobs.
#include <catch2/catch.hpp>

#include "core/engine.h"
#include "tests/core/grammar/calls/calls_kit.h"
#include "tests/support/constraints.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_calls_test {

using namespace weir::core;

namespace {

constexpr std::uint32_t most_reasoning = 6;

grammar::call_rules demanded(std::string format) {
  auto r = rules_for(std::move(format), tool_wishes::choice::required,
                     {tool_of("look", R"({"type":"object","properties":{"n":{"enum":[1,22]},
                        "at":{"type":"string","maxLength":3}},"required":["n","at"],
                        "additionalProperties":false})")});
  r.reasoning = {"<think>\n", "\n</think>\n\n"};
  r.begins_in_reasoning = true;
  r.max_reasoning_tokens = most_reasoning;
  r.tools.parallel = false;
  return r;
}

struct demanded_answer {
  std::vector<token_id> ids;
  finish_reason end = finish_reason::error;
};

// The answer of job 1, beside `others`.
demanded_answer answer_of(const grammar::call_rules& rules, const words_ptr& words, loop_kind how,
                          std::shared_ptr<lazy_helpers> helpers, std::uint64_t others) {
  engine_rig rig(small_config(), words, 4096, how, std::move(helpers));
  auto compiled = grammar::compile_answer(rules, words.get());
  REQUIRE(compiled.has_value());
  auto over = grammar::constraint::make(std::move(*compiled), views_of(words));
  REQUIRE(over.has_value());
  job j = rig.job(1, 400);
  j.constraint = *over;
  const auto sink = rig.submit(std::move(j));
  for (std::uint64_t n = 0; n < others; ++n) rig.submit(rig.job(100 + n, 60));
  rig.run();
  return {sink->ids(), sink->end->reason};
}

// The parts of an answer, as answer_fixtures.h shows them.
std::string parts_of(const grammar::call_rules& rules, const words_ptr& words,
                     const std::vector<token_id>& ids) {
  answer_setting s{.format = rules.format, .words = words};
  s.begins_in_reasoning = true;
  s.calls_only = true;
  s.tools = rules.tools.tools;
  std::string text;
  for (const auto id : ids) text += words->token_bytes(id);
  return read_tokens(s, text);
}

}  // namespace

TEST_CASE("a demanded call behind reasoning is the same in both loops, with late masks and beside others") {
  for (const char* format : {"hermes", "qwen-coder", "mistral"}) {
    const auto rules = demanded(format);
    for (const auto& words : vocabularies(rules)) {
      const auto plain = answer_of(rules, words, loop_kind::plain, {}, 0);
      const auto parts = parts_of(rules, words, plain.ids);
      CAPTURE(format, words->vocab_size(), parts);
      CHECK(plain.end == finish_reason::stop);
      CHECK_THAT(parts, Catch::Contains("look") && Catch::Contains("\"n\""));
      CHECK_THAT(parts, !Catch::Contains("…"));  // the call is whole
      for (const auto how : {loop_kind::plain, loop_kind::overlapped})
        for (const bool late : {false, true})
          for (const std::uint64_t others : {0, 12}) {
            CAPTURE(how == loop_kind::plain, late, others);
            const auto helpers = late ? std::make_shared<lazy_helpers>() : nullptr;
            const auto again = answer_of(rules, words, how, helpers, others);
            CHECK(again.ids == plain.ids);
            CHECK(again.end == plain.end);
          }
    }
  }
}

}  // namespace weir::tests::engine_calls_test
