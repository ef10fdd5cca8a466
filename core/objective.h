// objective.h — the times that requests should keep: ttft, the time to the first token, and tpot, the time of
// an output token, which is the mean gap between the tokens of an answer.
//
// Thread safety: plain data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/error.h"

namespace weir::core {

struct objective {
  duration ttft{};  // from the reading of a request to the sampling of its first token
  duration tpot{};  // mean over the tokens behind the first
  bool set() const noexcept { return tpot > duration::zero(); }
};

// Parses `ttft=TIME,tpot=TIME`. A TIME is above 0 and at most an hour; without a unit it is in ms. Empty: no
// objective. Error: invalid_param, which names the part that is wrong or missing.
result<objective> parse_objective(std::string_view text);

// A name in a list of times, and where its time goes, in ms.
struct named_time {
  std::string_view name;
  double* ms = nullptr;
};
// Parses NAME=TIME,… of these names, each at most once, such as `ttft=200ms,tpot=0.05s`. Times are above 0;
// units are us, ms and s; without a unit it is ms. A name may end with `_ms`. `option`: what the error names.
result<> parse_times(const char* option, std::string_view text, std::span<const named_time> names);

}  // namespace weir::core
