// delays.h — a histogram of durations that any thread may add to: fine buckets for quantiles, and coarse ones
// with round bounds, as Prometheus publishes them.
//
// Each power of two of microseconds has 16 fine buckets, so a quantile is at most 1/16 above the true value.
// The last fine bucket counts everything from 2.3 hours on.
//
// Thread safety: any thread. A reader may miss durations that are added at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

#include "core/histogram.h"

namespace weir::core {

inline constexpr auto delay_bounds = bounds_in_s({0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                  0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60});

class delays {
 public:
  // A negative duration counts as zero.
  void add(duration d) noexcept {
    const std::int64_t ns = std::max<std::int64_t>(0, d.count());
    fine_[fine_bucket(static_cast<std::uint64_t>(ns) / 1000)].fetch_add(1, relaxed);
    coarse_[delay_bounds.bucket_of(ns)].fetch_add(1, relaxed);
    sum_.fetch_add(ns, relaxed);
  }
  // Adds the durations of another histogram.
  void add(const delays& o) noexcept {
    for (std::size_t i = 0; i < fine_.size(); ++i) fine_[i].fetch_add(o.fine_[i].load(relaxed), relaxed);
    for (std::size_t i = 0; i < coarse_.size(); ++i)
      coarse_[i].fetch_add(o.coarse_[i].load(relaxed), relaxed);
    sum_.fetch_add(o.sum_.load(relaxed), relaxed);
  }

  std::uint64_t count() const noexcept {
    std::uint64_t n = 0;
    for (const auto& c : fine_) n += c.load(relaxed);
    return n;
  }

  // The q-quantile in ms, 0 <= q <= 1; 0 if the histogram is empty.
  double quantile_ms(double q) const noexcept {
    const auto all = count();
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < fine_.size(); ++i) {
      seen += fine_[i].load(relaxed);
      if (seen > 0 && static_cast<double>(seen) >= q * static_cast<double>(all))
        return static_cast<double>(last_of(i)) / 1000;
    }
    return 0;
  }

  // The coarse buckets.
  histogram<delay_bounds> published() const noexcept {
    histogram<delay_bounds>::counts_type counts;
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = coarse_[i].load(relaxed);
    return {counts, sum_.load(relaxed)};
  }

 private:
  using counter = std::atomic<std::uint64_t>;
  static constexpr auto relaxed = std::memory_order_relaxed;

  static std::size_t fine_bucket(std::uint64_t us) noexcept {
    if (us < 32) return us;
    const int shift = std::bit_width(us) - 5;
    return std::min<std::size_t>(static_cast<std::size_t>(shift) * 16 + (us >> shift), fine_buckets - 1);
  }
  // The longest duration of a fine bucket, in us.
  static std::uint64_t last_of(std::size_t b) noexcept {
    if (b < 32) return b;
    const std::uint64_t shift = b / 16 - 1;
    return ((b - shift * 16 + 1) << shift) - 1;
  }

  static constexpr std::size_t fine_buckets = 16 * 28 + 32;
  std::array<counter, fine_buckets> fine_{};
  std::array<counter, delay_bounds.at.size() + 1> coarse_{};
  std::atomic<std::int64_t> sum_{0};  // ns
};

}  // namespace weir::core
