// histogram.h — counts of values by upper bound, as Prometheus publishes distributions.
//
// A value belongs to the first bucket whose bound is not below it, and to the last bucket, which has no
// bound, if there is none. Values are integers, such as a duration in ns; `per_unit` of them are one unit of
// what is published, such as one second.
//
// Thread safety: none; one thread at a time. Copies are plain data.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/clock.h"

namespace weir::core {

// Upper bounds of buckets, ascending.
template <std::size_t N>
struct histogram_bounds {
  std::array<std::int64_t, N> at;
  double per_unit;

  std::size_t bucket_of(std::int64_t value) const noexcept {
    return static_cast<std::size_t>(std::lower_bound(at.begin(), at.end(), value) - at.begin());
  }
};

// Bounds of durations, given in seconds.
template <std::size_t N>
constexpr histogram_bounds<N> bounds_in_s(const double (&seconds)[N]) {
  constexpr double ns = 1e9;
  histogram_bounds<N> b{{}, ns};
  for (std::size_t i = 0; i < N; ++i) b.at[i] = static_cast<std::int64_t>(seconds[i] * ns + 0.5);
  return b;
}
// Bounds of numbers that are published as they are.
template <std::size_t N>
constexpr histogram_bounds<N> bounds_of(const std::int64_t (&values)[N]) {
  histogram_bounds<N> b{{}, 1};
  for (std::size_t i = 0; i < N; ++i) b.at[i] = values[i];
  return b;
}

// A histogram with any bounds, to read. Valid as long as the histogram is.
struct histogram_view {
  std::span<const std::int64_t> bounds;
  std::span<const std::uint64_t> counts;  // by bucket: one more than bounds
  std::int64_t sum;                       // of the values
  double per_unit;
};

// `Bounds`: a constant of type histogram_bounds.
template <const auto& Bounds>
class histogram {
 public:
  using counts_type = std::array<std::uint64_t, Bounds.at.size() + 1>;

  histogram() = default;
  // A histogram of values that were counted elsewhere. `counts`: by bucket; `sum`: of the values.
  histogram(const counts_type& counts, std::int64_t sum) noexcept : counts_(counts), sum_(sum) {}

  // A negative value counts as 0.
  void add(std::int64_t value) noexcept {
    value = std::max<std::int64_t>(value, 0);
    ++counts_[Bounds.bucket_of(value)];
    sum_ += value;
  }
  void add(duration d) noexcept { add(d.count()); }

  histogram& operator+=(const histogram& o) noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += o.counts_[i];
    sum_ += o.sum_;
    return *this;
  }

  std::uint64_t count() const noexcept {
    std::uint64_t n = 0;
    for (const auto c : counts_) n += c;
    return n;
  }
  std::int64_t sum() const noexcept { return sum_; }
  histogram_view view() const noexcept { return {Bounds.at, counts_, sum_, Bounds.per_unit}; }

 private:
  counts_type counts_{};
  std::int64_t sum_ = 0;
};

}  // namespace weir::core
