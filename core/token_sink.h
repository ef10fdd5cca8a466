// token_sink.h — the one way back from the engine to whoever asked: a job's tokens, then its ending.
//
// Thread safety: write and finish are called by the engine's owner alone; abandoned from the owner and from
// every room that a job passes on its way in. No call may block, allocate per token, or call back into the
// engine.
//
// Invariants:
//   1. write is called only before finish; finish is called exactly once for every job that the engine
//   accepted.
//   2. Tokens arrive in order, each once, whatever was merged, withheld or preempted in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "core/clock.h"
#include "core/error.h"

namespace weir::core {

using token_id = std::int32_t;

// A sampled token and when it was sampled (not when it was delivered: it may have been withheld for a stop
// string).
struct token {
  token_id id = 0;
  time_point at{};
};

enum class finish_reason { stop, length, cancel, timeout, repetition, error };

constexpr const char* name(finish_reason r) noexcept {
  constexpr const char* names[] = {"stop", "length", "cancel", "timeout", "repetition", "error"};
  return names[static_cast<int>(r)];
}

struct ending {
  finish_reason reason = finish_reason::stop;
  // Bytes of the whole output that may be shown, counted over the delivered tokens' own bytes
  // (tokenizer::token_bytes): a stop string inside the last delivered token cuts it here. All: the maximum
  // value.
  std::uint64_t shown_bytes = std::numeric_limits<std::uint64_t>::max();
  std::uint32_t input_tokens = 0;
  std::uint32_t output_tokens = 0;  // through the ending token, delivered or not
  std::uint32_t cached_tokens = 0;  // of the prompt, taken from the prefix cache
  // When the sequence first entered a batch, when its first and last tokens were sampled; unset where it
  // never was.
  std::optional<time_point> scheduled, first_token, last_token;
  std::optional<time_point> released;  // when a cancel or a deadline had its pages given back
  duration max_gap{};               // longest time between two sampled tokens
  std::optional<error> fault;       // with reason == error
};

class token_sink {
 public:
  virtual ~token_sink() = default;

  // Takes as many of `tokens` from the front as there is room for and returns how many: the engine offers the
  // rest again with the next step.
  virtual std::size_t write(std::span<const token> tokens) = 0;

  virtual void finish(const ending& how) = 0;

  // True once nobody wants the tokens any more: a job that finds this before it is admitted goes no further.
  virtual bool abandoned() const noexcept = 0;
};

}  // namespace weir::core
