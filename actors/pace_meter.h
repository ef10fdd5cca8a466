// pace_meter.h — measures the throughput of an engine while it has work: prompt tokens and sampled tokens a
// second.
//
// Time counts from wake() and from step to step, whether the device computes or a paced model waits. Time
// without work does not count. Older measurements fade exponentially, with a time constant of 30 s of counted
// time.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cmath>

#include "core/engine.h"

namespace weir::actors {

class pace_meter {
 public:
  // The engine, which was idle, has work from now on.
  void wake(core::time_point now) noexcept { last_ = now; }

  // A step of the engine ended.
  void add(core::time_point now, const core::step_report& r) noexcept {
    const double s = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    if (r.prefilling > 0) prompts_.add(r.prompt_tokens, s);
    tokens_.add(r.tokens, s);
  }

  // Prompt tokens a second, over steps with a prompt to compute; those found in the cache count. 0: none
  // measured.
  double prompt_tokens_per_s() const noexcept { return prompts_.value(); }
  // Sampled tokens a second; 0 before the first.
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
