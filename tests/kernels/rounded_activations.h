// rounded_activations.h — the definition of --activations int8 by plain loops: what each activation becomes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace weir::tests {

// Rows of `width` numbers, each rounded to the nearest of 255 numbers: 32 of a row share the scale largest /
// 127. A group that is not finite becomes NaN.
inline std::vector<double> rounded_activations(const std::vector<float>& x, std::size_t width) {
  std::vector<double> out;
  for (std::size_t at = 0; at < x.size(); at += 32) {
    if (at % width == 0 && width % 32 != 0) return {};
    float largest = 0;
    bool finite = true;
    for (std::size_t i = 0; i < 32; ++i) {
      finite = finite && std::isfinite(x[at + i]);
      largest = std::max(largest, std::abs(x[at + i]));
    }
    const bool zero = largest < 0x1p-120f;
    const float scale = largest / 127, inverse = 127 / largest;
    for (std::size_t i = 0; i < 32; ++i) {
      const float scaled = x[at + i] * inverse;
      out.push_back(!finite ? std::numeric_limits<double>::quiet_NaN()
                    : zero  ? 0
                            : std::nearbyint(double{scaled}) * double{scale});
    }
  }
  return out;
}

}  // namespace weir::tests
