// clock.h — the engine's monotonic time. A clock is passed to the engine, so that tests can set the time.
#pragma once

#include <chrono>

namespace weir::core {

using duration = std::chrono::nanoseconds;
using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

// Thread safety: now() from any thread.
class clock {
 public:
  virtual ~clock() = default;
  virtual time_point now() const noexcept = 0;
};

class system_clock final : public clock {
 public:
  time_point now() const noexcept override {
    return std::chrono::time_point_cast<duration>(std::chrono::steady_clock::now());
  }
};

}  // namespace weir::core
