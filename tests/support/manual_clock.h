// manual_clock.h — a clock that stands still until a test moves it.
#pragma once

#include "core/clock.h"

namespace weir::tests {

class manual_clock final : public core::clock {
 public:
  core::time_point now() const noexcept override { return now_; }
  void advance(core::duration d) { now_ += d; }
  void set(core::time_point t) { now_ = t; }

 private:
  core::time_point now_{std::chrono::seconds(1)};
};

}  // namespace weir::tests
