// repeats.h — detects that a job's output repeats itself.
//
// An output ends in a loop of k if its last k * p tokens are the same p tokens k times in a row, for a period
// p of 1 to `longest_period`. For each period, one counter has the number of tokens at the end that equal the
// token p before them. The output ends in a loop when the counter is at least (k - 1) * p. A token costs
// `longest_period` comparisons, however long the output is.
//
// Thread safety: the owner's thread only. feed() does not allocate.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/token.h"

namespace weir::core {

class repeats {
 public:
  static constexpr std::uint32_t longest_period = 64;

  // REQUIRES: times >= 2.
  explicit repeats(std::uint32_t times) : times_(times) {}

  // To be called after each token, with the whole output so far. Returns whether the output ends in a loop of
  // `times`. REQUIRES: `output` is not empty.
  bool feed(std::span<const token> output) noexcept {
    const std::size_t n = output.size();
    const auto periods = static_cast<std::uint32_t>(std::min<std::size_t>(longest_period, n - 1));
    bool looped = false;
    for (std::uint32_t p = 1; p <= periods; ++p) {
      std::uint32_t& equal = equal_[p - 1];
      equal = output[n - 1].id == output[n - 1 - p].id ? equal + 1 : 0;
      looped |= equal >= std::uint64_t{times_ - 1} * p;
    }
    return looped;
  }

  // The output has lost its last tokens, and is `output` now.
  void go_back(std::span<const token> output) noexcept {
    const std::size_t n = output.size();
    for (std::uint32_t p = 1; p <= longest_period; ++p) {
      const std::size_t most = std::min(n - std::min<std::size_t>(n, p), std::size_t{times_} * p);
      std::uint32_t same = 0;  // more than `most` make no difference: the output ends in a loop
      while (same < most && output[n - 1 - same].id == output[n - 1 - same - p].id) ++same;
      equal_[p - 1] = same;
    }
  }

 private:
  std::uint32_t times_;
  std::array<std::uint32_t, longest_period> equal_{};  // [period - 1] see above
};

}  // namespace weir::core
