// arrivals.h — when requests come, in an open loop: whatever the server does, the next one does not wait for
// it.
//
// A renewal process: gaps are independent, of mean 1/rate. Their shape is vLLM's `burstiness`: gamma with
// that shape and scale 1/(rate × shape), so that 1 is Poisson, smaller comes in bursts, larger is more
// regular; constant has no randomness at all. A ramp lets the rate rise linearly from nothing over its time
// (by inverting the expected count).
//
// Thread safety: none. The same options give the same times.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>

#include "core/error.h"

namespace weir::load {

struct arrival_options {
  double rate = 1;         // requests a second, > 0
  double burstiness = 1;   // shape of the gaps, > 0; 0: constant
  double ramp_s = 0;
  std::uint64_t seed = 0;
};

class arrivals {
 public:
  explicit arrivals(const arrival_options& o) : o_(o), random_(o.seed) {}

  // Seconds since the start; never falls.
  double next() {
    count_ += gap();
    return time_of(count_);
  }

 private:
  // In expected requests, so that a ramp stretches it.
  double gap() {
    if (o_.burstiness == 0) return 1;
    return std::gamma_distribution<double>(o_.burstiness, 1 / o_.burstiness)(random_);
  }

  // Expected requests up to t: rate t² / (2 ramp) while it rises, then rate (t − ramp / 2).
  double time_of(double count) const {
    const double risen = o_.rate * o_.ramp_s / 2;
    if (count < risen) return std::sqrt(2 * o_.ramp_s * count / o_.rate);
    return o_.ramp_s + (count - risen) / o_.rate;
  }

  arrival_options o_;
  std::mt19937_64 random_;
  double count_ = 0;
};

// `poisson`, `constant` or `gamma:B`: the burstiness.
core::result<double> parse_arrivals(std::string_view text);

}  // namespace weir::load
