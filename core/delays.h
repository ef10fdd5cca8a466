// delays.h — a histogram of durations.
//
// Each power of two of microseconds has 16 buckets, so a quantile is at most 1/16 above the true value. The
// last bucket counts everything from 2.3 hours on.
//
// Thread safety: any thread. A reader may miss durations that are added at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

namespace weir::core {

class delays {
 public:
  void add(std::chrono::nanoseconds d) noexcept {
    const auto us =
        std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(d).count());
    counts_[bucket_of(static_cast<std::uint64_t>(us))].fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t count() const noexcept {
    std::uint64_t n = 0;
    for (const auto& c : counts_) n += c.load(std::memory_order_relaxed);
    return n;
  }

  // The q-quantile in ms, 0 <= q <= 1; 0 if the histogram is empty.
  double quantile_ms(double q) const noexcept {
    const auto all = count();
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i].load(std::memory_order_relaxed);
      if (seen > 0 && static_cast<double>(seen) >= q * static_cast<double>(all))
        return static_cast<double>(last_of(i)) / 1000;
    }
    return 0;
  }

 private:
  static std::size_t bucket_of(std::uint64_t v) noexcept {
    if (v < 32) return v;
    const int shift = std::bit_width(v) - 5;
    return std::min<std::size_t>(static_cast<std::size_t>(shift) * 16 + (v >> shift), buckets - 1);
  }
  static std::uint64_t last_of(std::size_t b) noexcept {
    if (b < 32) return b;
    const std::uint64_t shift = b / 16 - 1;
    return ((b - shift * 16 + 1) << shift) - 1;
  }

  static constexpr std::size_t buckets = 16 * 28 + 32;
  std::array<std::atomic<std::uint64_t>, buckets> counts_{};
};

}  // namespace weir::core
