// arrivals.h — the times of requests in an open loop, where no request waits for the server.
//
// The arrivals are a renewal process: gaps are independent, with mean 1/rate. Their distribution is the one
// of vLLM's `burstiness`: gamma with that shape and scale 1/(rate × shape). Shape 1 is a Poisson process, a
// smaller one gives bursts, a larger one is more regular. Constant gaps have no randomness at all. During a
// ramp, the rate rises linearly from 0; arrival times are found by inverting the expected count.
//
// Thread safety: none; one owner. The same options give the same times.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>

#include "core/error.h"

namespace weir::load {

struct arrival_options {
  double rate = 1;         // requests a second, > 0
  double burstiness = 1;   // shape of the gaps' distribution, > 0; 0: constant gaps
  double ramp_s = 0;
  std::uint64_t seed = 0;
};

class arrivals {
 public:
  explicit arrivals(const arrival_options& o) : o_(o), random_(o.seed) {}

  // Time of the next request, in seconds since the start. Never less than the one before.
  double next() {
    count_ += gap();
    return time_of(count_);
  }

 private:
  // The next gap, measured in expected requests: its mean is 1, whatever the rate is at that time.
  double gap() {
    if (o_.burstiness == 0) return 1;
    return std::gamma_distribution<double>(o_.burstiness, 1 / o_.burstiness)(random_);
  }

  // Inverse of the expected number of requests until t, which is rate t² / (2 ramp) during the ramp, and then
  // rate (t − ramp / 2).
  double time_of(double count) const {
    const double risen = o_.rate * o_.ramp_s / 2;
    if (count < risen) return std::sqrt(2 * o_.ramp_s * count / o_.rate);
    return o_.ramp_s + (count - risen) / o_.rate;
  }

  arrival_options o_;
  std::mt19937_64 random_;
  double count_ = 0;
};

// The burstiness of `poisson`, `constant` or `gamma:B`. Error: invalid_param.
core::result<double> parse_arrivals(std::string_view text);

}  // namespace weir::load
