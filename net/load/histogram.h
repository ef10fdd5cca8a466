// histogram.h — counts values of any size in bounded memory; quantiles are exact to one part in a thousand.
//
// The layout is that of HdrHistogram (Gil Tene, hdrhistogram.org). Each value below 2,048 units has a bucket.
// Above, every power of two is divided into 1,024 equal buckets. Memory depends on the largest value only: 4
// bytes for each bucket, at most 45,055 buckets.
//
// Thread safety: none; one owner. merge() combines several histograms.
// Invariants:
//   1. count() is the number of values added. max() and min() are exact to the unit, mean() to rounding.
//   2. quantile(q) is at least the smallest recorded value that a share q of all values does not exceed, at
//      most 1/1024 above it, and never above max().
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace weir::load {

class histogram {
 public:
  // `unit`: the resolution, in the unit of the values.
  explicit histogram(double unit = 1e-3) : unit_(unit) {}

  // Negative values count as zero.
  void add(double value, std::uint64_t times = 1) {
    if (times == 0) return;
    const double scaled = std::round(value / unit_);
    const auto v = scaled <= 0 ? 0 : static_cast<std::uint64_t>(std::min(scaled, largest));
    const auto at = bucket_of(v);
    if (at >= counts_.size()) counts_.resize(at + 1);
    counts_[at] += static_cast<std::uint32_t>(times);
    count_ += times;
    sum_ += static_cast<double>(v) * static_cast<double>(times);
    max_ = std::max(max_, v);
    min_ = std::min(min_, v);
  }

  // Adds all values of another histogram. REQUIRES: both have the same resolution.
  void merge(const histogram& other) {
    if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
    for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
    min_ = std::min(min_, other.min_);
  }

  std::uint64_t count() const noexcept { return count_; }
  double mean() const noexcept { return count_ ? unit_ * sum_ / static_cast<double>(count_) : 0; }
  double max() const noexcept { return unit_ * static_cast<double>(max_); }
  double min() const noexcept { return count_ ? unit_ * static_cast<double>(min_) : 0; }

  // 0 if the histogram is empty.
  double quantile(double q) const noexcept {
    if (count_ == 0) return 0;
    const auto wanted = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_) - 1e-9)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= wanted) return unit_ * static_cast<double>(std::min(last_of(i), max_));
    }
    return max();
  }

 private:
  static constexpr double largest = 9e15;

  static std::size_t bucket_of(std::uint64_t v) noexcept {
    if (v < 2048) return v;
    const int shift = std::bit_width(v) - 11;
    return static_cast<std::size_t>(shift) * 1024 + (v >> shift);
  }
  // The largest value of a bucket, in units.
  static std::uint64_t last_of(std::size_t bucket) noexcept {
    if (bucket < 2048) return bucket;
    const std::uint64_t shift = bucket / 1024 - 1;
    return ((bucket - shift * 1024 + 1) << shift) - 1;
  }

  double unit_;
  std::vector<std::uint32_t> counts_;
  std::uint64_t count_ = 0, max_ = 0, min_ = std::numeric_limits<std::uint64_t>::max();
  double sum_ = 0;
};

}  // namespace weir::load
