// awaited_draws.h — the draws of the step in flight whose tokens a sequence awaits.
//
// They have consecutive numbers among the draws of their step, and their tokens come in that order. A
// sequence that is rewound or loses its pages forgets them: their results are then dropped.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cassert>
#include <cstdint>

#include "core/model/batch.h"

namespace weir::core {

class awaited_draws {
 public:
  bool any() const noexcept { return count_ > 0; }
  std::uint32_t count() const noexcept { return count_; }

  // Draw `number` of the step in flight is requested. REQUIRES: none is awaited.
  void request(std::uint32_t number) noexcept {
    assert(!any());
    first_ = number;
    count_ = 1;
  }
  // The token of the first awaited draw has come: returns the draw's number. REQUIRES: any().
  std::uint32_t take() noexcept {
    assert(any());
    --count_;
    return first_++;
  }
  void forget() noexcept { count_ = 0; }

  // What stands in batch::tokens for the `i`-th awaited token. REQUIRES: i < count().
  token_id stand_in(std::uint32_t i) const noexcept {
    assert(i < count_);
    return drawn_by(first_ + i);
  }

 private:
  std::uint32_t first_ = 0, count_ = 0;  // number of the first one, and how many
};

}  // namespace weir::core
