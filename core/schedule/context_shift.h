// context_shift.h — how many tokens leave a full context, so that its sequence goes on (job::shifts).
//
// A context of `longest` tokens keeps its first `kept` ones. Of the tokens behind them the older half leaves,
// and the rows of all that stay are computed anew. The same number leaves each time that the context is full.
//
// Thread safety: a pure function; any thread.
#pragma once

#include <cstdint>

#include "core/cache/page.h"

namespace weir::core {

// 0: a shift would free less than a page or less than a quarter of the context, and is not worth its cost.
constexpr std::uint32_t tokens_that_leave(std::uint32_t longest, std::uint32_t kept) noexcept {
  if (kept >= longest) return 0;
  const std::uint32_t half = (longest - kept) / 2;
  return half >= page_tokens && half >= (longest + 3) / 4 ? half : 0;
}

}  // namespace weir::core
