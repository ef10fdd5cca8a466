// rotary.h — bias, norm and rotary embedding of one head of one row, computed by one warp.
#pragma once

#include "kernels/cuda/page_numbers.h"
#include "kernels/cuda/warp.h"

namespace weir::kernels::cuda {

// Computes rotary(norm(from + bias)) of one head [head_dim] of a row of type `rows`. `bias` and `weight` (of
// the norm) are [head_dim] and may be null; `cos` and `sin` are [head_dim / 2]. For each even i < head_dim /
// 2 one lane calls put(i, low, high): `low` are numbers i and i + 1 of the result, `high` are numbers
// head_dim / 2 + i and + 1, not rounded yet. Called by all lanes of a warp; `lane` is threadIdx.x % 32.
template <page_type pages, int head_dim, class Put>
__device__ __forceinline__ void rotary_head(dtype rows, const element* from, const float* bias,
                                            const float* weight, float eps, const float* cos,
                                            const float* sin, int lane, Put put) {
  constexpr int half = head_dim / 2, rounds = (half + 63) / 64;
  float2 low[rounds], high[rounds];
  float squares = 0;
#pragma unroll
  for (int r = 0; r < rounds; ++r) {
    const int i = r * 64 + lane * 2;
    low[r] = high[r] = make_float2(0, 0);
    if (i >= half) continue;
    low[r] = row_floats<pages>(rows, from + i);
    high[r] = row_floats<pages>(rows, from + half + i);
    if (bias) {
      low[r].x += bias[i];
      low[r].y += bias[i + 1];
      high[r].x += bias[half + i];
      high[r].y += bias[half + i + 1];
    }
    squares += low[r].x * low[r].x + low[r].y * low[r].y + high[r].x * high[r].x + high[r].y * high[r].y;
  }
  const float scale = weight ? rsqrtf(warp_sum(squares) / head_dim + eps) : 1.0f;
#pragma unroll
  for (int r = 0; r < rounds; ++r) {
    const int i = r * 64 + lane * 2;
    if (i >= half) continue;
    float2 a = low[r], b = high[r];
    if (weight) {
      a.x *= scale * weight[i];
      a.y *= scale * weight[i + 1];
      b.x *= scale * weight[half + i];
      b.y *= scale * weight[half + i + 1];
    }
    const float2 c = *reinterpret_cast<const float2*>(cos + i), s = *reinterpret_cast<const float2*>(sin + i);
    put(i, make_float2(a.x * c.x - b.x * s.x, a.y * c.y - b.y * s.y),
        make_float2(b.x * c.x + a.x * s.x, b.y * c.y + a.y * s.y));
  }
}

}  // namespace weir::kernels::cuda
