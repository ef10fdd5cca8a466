// free_turn.h — a turn of work that shares its thread with nobody: it never waits. What a test wants to
// happen at each look it gives in `looked`.
#pragma once

#include <functional>

#include "core/turn.h"
#include "tests/support/manual_clock.h"

namespace weir::tests {

class free_turn final : public core::turn {
 public:
  free_turn() = default;
  explicit free_turn(const core::clock& time) : time_(&time) {}

  core::time_point now() const noexcept override { return time_->now(); }
  bool go_on() override {
    ++looks;
    if (looked) looked();
    return !unwanted;
  }

  bool unwanted = false;
  int looks = 0;
  std::function<void()> looked;

 private:
  const manual_clock still_;
  const core::clock* time_ = &still_;
};

}  // namespace weir::tests
