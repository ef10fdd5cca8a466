// job_kinds.h — jobs of every kind by number: constraints, calls of tools, several choices of a prompt, stop
// strings, banned strings, healing, penalties, cuts, mirostat, bans, loops and logprobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/grammar/calls.h"
#include "tests/support/constraints.h"
#include "tests/support/engine_rig.h"

namespace weir::tests {

// The kinds are numbered from 0 on.
inline constexpr std::uint64_t job_kinds = 72;

// The vocabulary of all kinds: letters(61), what JSON needs, and marks of calls and reasoning.
inline const std::shared_ptr<const core::tokenizer>& kind_words() {
  static const auto words = [] {
    std::vector<std::string> pieces;
    const auto letter = letters(61);
    for (core::token_id id = 0; id < 61; ++id) pieces.emplace_back(letter->token_bytes(id));
    for (const char c : std::string_view("{}[]\":, \n<>/_-0123456789")) pieces.emplace_back(1, c);
    for (const char* mark : {"<tool_call>", "</tool_call>", "<think>", "</think>"}) pieces.emplace_back(mark);
    return std::shared_ptr<const core::tokenizer>(std::make_shared<toy_tokenizer>(std::move(pieces)));
  }();
  return words;
}

// Reasoning of few tokens, then a call of one of two tools, whose arguments follow their schemas.
inline std::shared_ptr<core::grammar::constraint> fresh_calls(
    std::shared_ptr<core::grammar::terminal_views> views) {
  core::grammar::call_rules rules;
  rules.format = "hermes";
  rules.reasoning = {"<think>\n", "\n</think>\n\n"};
  rules.begins_in_reasoning = true;
  rules.max_reasoning_tokens = 6;
  for (const char* name : {"look", "tell"}) {
    core::tool_definition tool;
    tool.name = name;
    tool.parameters = R"({"type":"object","properties":{"n":{"enum":[1,22]},"at":{"enum":["here","hence"]}},
                          "required":["n","at"],"additionalProperties":false})";
    tool.strict = true;
    rules.tools.tools.push_back(std::move(tool));
  }
  rules.tools.how = core::tool_wishes::choice::required;
  rules.tools.parallel = false;
  auto compiled = core::grammar::compile_answer(rules, kind_words().get());
  REQUIRE(compiled.has_value());
  auto made = core::grammar::constraint::make(std::move(*compiled), std::move(views));
  REQUIRE(made.has_value());
  return *made;
}

inline bool has_banned_strings(std::uint64_t kind) { return kind % 5 == 2 || kind % 7 == 3; }

// The same tokens whichever engine over kind_words() runs it. Each call makes a constraint that nobody has
// used.
inline core::job job_of_kind(const engine_rig& rig, std::uint64_t kind) {
  static const auto views = views_of(kind_words());
  const auto made = [&](std::uint64_t n) {
    return rig.job(n, 2 + static_cast<std::uint32_t>(n * 7 % 60), 1 + n * 17 % 150);
  };
  auto j = made(kind);
  constexpr const char* regexes[] = {"([a-c]{2}x?)*z", "(ab|cd|e)+", "[a-m]{5,40}",
                                     "(abcabcdefabaaq|qponmlk|xyz(i|j))+z", "hgfedcbabaaa{0,30}hgfed(x|y)"};
  if (kind % 9 == 4) j.prompt = made(kind - 1).prompt;  // another choice of the same request
  if (kind % 3 == 1) j.stop = {"ab", "bca", "q"};
  if (kind % 6 == 1) j.shows_stop = true;
  if (kind % 4 == 0) j.sampling.temperature = 0;
  if (kind % 4 == 1) j.constraint = fresh_constraint(regexes[kind / 4 % 5], views);
  if (kind % 5 == 0) j.sampling.top_p = 0.7f;
  if (kind % 5 == 3) j.sampling.repetition_penalty = 1.3f;
  if (kind % 6 == 0) j.min_tokens = 10;
  if (kind % 6 == 4) j.max_repeats = 3;
  if (kind % 7 == 0) j.sampling.presence_penalty = 0.5f;
  if (kind % 7 == 4) j.sampling.logit_bias = {{0, 6.0f}, {1, 5.0f}, {2, -100.0f}};
  if (kind % 8 == 0) j.stop_token_ids = {3, 11};
  if (has_banned_strings(kind)) j.banned = {"abc", "ca", "cde", "dab", "g", "22", "q"};
  if (kind % 9 == 2) j.prompt_logprobs = 1;
  if (kind % 10 == 3) j.cache_salt = "tenant";
  if (kind % 12 == 5) j.force = core::grammar::forcing::off;
  if (kind % 4 == 3 || kind % 20 == 13) j.top_logprobs = 2;
  if (kind % 11 == 6) j.sampling.dry_multiplier = 0.8f;
  if (kind % 11 == 7) j.sampling.no_repeat_ngram_size = 2;
  if (kind % 11 == 8) j.sampling.repetition_penalty = 1.2f, j.sampling.repetition_range = 7;
  if (kind % 13 == 9) j.sampling.dynatemp_range = 0.5f, j.sampling.top_n_sigma = 2;
  if (kind % 10 == 9) j.healing = core::healing_of(2, *kind_words(), kind_words()->vocab_size());
  if (kind % 17 == 6) j.sampling.mirostat_mode = 1 + kind / 17 % 2;
  if (kind % 12 == 2 || kind % 12 == 11) {  // the latter with logprobs of every token
    j.constraint = fresh_calls(views);
    j.max_tokens += 60;
    j.stop = {};
    if (!j.banned.empty()) j.banned = {"22", "hence"};
  }
  return j;
}

// What a job gives that runs alone and is never interrupted.
inline recording_sink run_of_kind(std::uint64_t kind, loop_kind how = loop_kind::plain) {
  engine_rig rig(small_config(), kind_words(), 4096, how);
  rig.toy->some_rows_unwanted = true;
  const auto sink = rig.submit(job_of_kind(rig, kind));
  rig.run();
  return *sink;
}

}  // namespace weir::tests
