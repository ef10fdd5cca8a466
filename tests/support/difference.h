// difference.h — how far two rows of logits lie apart.
//
// Thread safety: a pure function.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace weir::tests {

// Largest difference of a row of logits, in units of the largest of `wanted`. A NaN is 1e30 off.
inline double difference(std::span<const float> wanted, std::span<const float> got) {
  double largest = 1e-30, worst = 0;
  if (wanted.size() != got.size()) return 1e9;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(double{wanted[i]}));
    const double d = std::abs(double{wanted[i]} - got[i]);
    worst = d <= 1e30 ? std::max(worst, d) : 1e30;
  }
  return worst / largest;
}

}  // namespace weir::tests
