// job_kinds.h — jobs of every kind by number: constraints, stop strings, penalties, loops and logprobs, over
// the tokens of letters(61).
#pragma once

#include <memory>

#include "tests/support/constraints.h"
#include "tests/support/engine_rig.h"

namespace weir::tests {

// The kinds are numbered from 0 on.
inline constexpr std::uint64_t job_kinds = 60;

// The same tokens whichever engine runs it. Each call makes a constraint that nobody has used.
inline core::job job_of_kind(const engine_rig& rig, std::uint64_t kind) {
  static const auto views = views_of(letters(61));
  auto j = rig.job(kind, 2 + static_cast<std::uint32_t>(kind * 7 % 60), 1 + kind * 17 % 150);
  constexpr const char* regexes[] = {"([a-c]{2}x?)*z", "(ab|cd|e)+", "[a-m]{5,40}",
                                     "(abcabcdefabaaq|qponmlk|xyz(i|j))+z", "hgfedcbabaaa{0,30}hgfed(x|y)"};
  if (kind % 3 == 1) j.stop = {"ab", "bca", "q"};
  if (kind % 4 == 0) j.sampling.temperature = 0;
  if (kind % 4 == 1) j.constraint = fresh_constraint(regexes[kind / 4 % 5], views);
  if (kind % 5 == 0) j.sampling.top_p = 0.7f;
  if (kind % 5 == 3) j.sampling.repetition_penalty = 1.3f;
  if (kind % 6 == 0) j.min_tokens = 10;
  if (kind % 6 == 4) j.max_repeats = 3;
  if (kind % 7 == 0) j.sampling.presence_penalty = 0.5f;
  if (kind % 7 == 4) j.sampling.logit_bias = {{0, 6.0f}, {1, 5.0f}};
  if (kind % 8 == 0) j.stop_token_ids = {3, 11};
  if (kind % 9 == 2) j.prompt_logprobs = 1;
  if (kind % 10 == 3) j.cache_salt = "tenant";
  if (kind % 12 == 5) j.force = core::grammar::forcing::off;
  if (kind % 4 == 3 || kind % 20 == 13) j.top_logprobs = 2;
  return j;
}

// What a job gives that runs alone and is never interrupted.
inline recording_sink run_of_kind(std::uint64_t kind, loop_kind how = loop_kind::plain) {
  engine_rig rig(small_config(), how);
  rig.toy->some_rows_unwanted = true;
  const auto sink = rig.submit(job_of_kind(rig, kind));
  rig.run();
  return *sink;
}

}  // namespace weir::tests
