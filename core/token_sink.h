// token_sink.h — receives the output of a job from the engine: its tokens, then its ending.
//
// Thread safety: the writes, paused() and finish() on the owner's thread only; abandoned() also on any thread
// that handles the job before it is admitted. No call may block, allocate per token, call back into the
// engine, or throw: the engine would give again what a sink had taken.
//
// Invariants:
//   1. The writes are called only before finish(), and finish() exactly once for every job of the engine.
//   2. Tokens arrive in order and each once, whatever was withheld or preempted in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/token.h"
#include "kernels/logprobs.h"

namespace weir::core {

enum class finish_reason { stop, length, cancel, timeout, repetition, banned, error };
inline constexpr std::size_t finish_reasons = 7;  // how many there are

constexpr const char* name(finish_reason r) noexcept {
  constexpr const char* names[finish_reasons] = {"stop",       "length", "cancel", "timeout",
                                                 "repetition", "banned", "error"};
  return names[static_cast<int>(r)];
}

// How a job ended.
struct ending {
  finish_reason reason = finish_reason::stop;
  // Bytes of the output that may be shown, counted over the bytes of the delivered tokens
  // (tokenizer::token_bytes). A stop string that begins inside the last delivered token sets it; the maximum
  // value means all bytes.
  std::uint64_t shown_bytes = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::uint32_t> stop_string;  // index in job::stop of the string that ended it; unset: none
  std::uint32_t input_tokens = 0;
  std::uint32_t output_tokens = 0;  // sampled, the ending token included, delivered or not
  std::uint32_t cached_tokens = 0;  // of the prompt, taken from the prefix cache
  std::uint32_t shifts = 0;         // times that tokens left a full context (job::shifts)
  // When the sequence was first part of a batch, and when its first and last tokens were sampled; unset where
  // that never happened.
  std::optional<time_point> scheduled, first_token, last_token;
  std::optional<time_point> released;  // when its pages were free, if a cancel or a deadline ended it
  duration max_gap{};                  // longest time between two sampled tokens
  std::optional<error> fault;          // why, if reason == error
  // Logprobs of the prompt's tokens, from the second on, as far as they were computed; null: the job asked
  // for none.
  std::shared_ptr<const std::vector<kernels::scored_token>> prompt_logprobs;
};

class token_sink {
 public:
  virtual ~token_sink() = default;

  // Takes as many tokens from the front of `tokens` as it has room for, and returns how many. The engine
  // offers the rest again in a later step.
  virtual std::size_t write(std::span<const token> tokens) = 0;

  // Called in place of write() for a job with job::top_logprobs: logprobs[i] are those of tokens[i]. A sink
  // that keeps no logprobs need not override this function.
  virtual std::size_t write_with_logprobs(std::span<const token> tokens,
                                          [[maybe_unused]] std::span<const kernels::draw_logprobs> logprobs) {
    return write(tokens);
  }

  // A pause of the job begins (true) or is over (false), in turns. A job may end while it is paused.
  virtual void paused([[maybe_unused]] bool now) noexcept {}

  // The job has ended; nothing follows.
  virtual void finish(const ending& how) = 0;

  // Whether the tokens are no longer wanted. A job that is not admitted yet then ends as cancelled.
  virtual bool abandoned() const noexcept = 0;
};

}  // namespace weir::core
