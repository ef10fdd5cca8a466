// pace_meter.h — how fast an engine works while it has work: prompt tokens and sampled tokens a second.
//
// Time passes from wake() and from step to step, whether the device computes or a paced model waits; time
// without work does not count. What is older than half a minute of such time fades.
//
// Thread safety: the owner's thread.
#pragma once

#include <cmath>

#include "core/engine.h"

namespace weir::actors {

class pace_meter {
 public:
  // There is something to do again.
  void wake(core::time_point now) noexcept { last_ = now; }

  // A step of the engine has ended.
  void add(core::time_point now, const core::step_report& r) noexcept {
    const double s = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    if (r.prefilling > 0) prompts_.add(r.prompt_tokens, s);
    tokens_.add(r.tokens, s);
  }

  // 0 where nothing was measured.
  double prompt_tokens_per_s() const noexcept { return prompts_.value(); }
  double tokens_per_s() const noexcept { return tokens_.value(); }

 private:
  static constexpr double memory_s = 30;
  struct rate {
    double amount = 0, seconds = 0;
    void add(double n, double s) noexcept {
      const double kept = std::exp(-s / memory_s);
      amount = amount * kept + n;
      seconds = seconds * kept + s;
    }
    double value() const noexcept { return seconds > 0 ? amount / seconds : 0; }
  };

  core::time_point last_{};
  rate prompts_, tokens_;
};

}  // namespace weir::actors
