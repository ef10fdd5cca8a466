// per_second.h — a bound of how much happens in a second.
//
// Thread safety: none.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace weir::actors::fleet {

class per_second {
 public:
  explicit per_second(std::uint64_t most) : most_(most) {}

  // Counts `amount` of what happens now. False: the second has had as much as it may; nothing is counted.
  bool take(core::time_point now, std::uint64_t amount = 1) {
    if (now - began_ >= std::chrono::seconds(1)) {
      began_ = now;
      had_ = 0;
    }
    if (had_ >= most_) return false;
    had_ += amount;
    return true;
  }

 private:
  const std::uint64_t most_;
  core::time_point began_{};
  std::uint64_t had_ = 0;
};

}  // namespace weir::actors::fleet
