// norm_before.h — the norm in front of a product of one row, which the kernel of that product computes.
#pragma once

#include <cstdint>

namespace weir::kernels::cuda {

// The row is row_norm(rows[from[0], :]) * weight; where `from` is null, row 0 is meant. rows [.., k] and
// weight [k] are f32, in memory of the device. The elements that are multiplied are row * weight, rounded;
// the factor of the norm multiplies the sums. No norm where `rows` is null.
struct norm_before {
  const float* rows = nullptr;
  const float* weight = nullptr;
  const std::int32_t* from = nullptr;
  float eps = 0;
};

}  // namespace weir::kernels::cuda
