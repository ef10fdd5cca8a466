// head_order.h — where the numbers of a head are of which only a part turns (rotary_args::rest).
#pragma once

#include <cstdint>

namespace weir::kernels::cuda {

// The number of the model's head that a kernel has as number i. `half` is half of the head's numbers, and
// `pairs` of its pairs turn.
__host__ __device__ constexpr int number_at(int i, int half, int pairs) {
  if (i < half) return i < pairs ? i : i + pairs;
  return i - half < pairs ? i - half + pairs : i;
}

}  // namespace weir::kernels::cuda
