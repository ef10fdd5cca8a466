// rotary.h — bias, norm and rotary embedding of one head of one row, computed by one warp.
#pragma once

#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/pages/head_order.h"
#include "kernels/cuda/pages/page_numbers.h"

namespace weir::kernels::cuda {

// One head [head_dim] of a row, and its angles: load() begins to read them, and turn() waits for them. Both
// are called by all lanes of a warp; `lane` is threadIdx.x % 32. `rest` is that of rotary_args.
template <page_type pages, int head_dim>
struct head_to_turn {
  static constexpr int half = head_dim / 2, rounds = (half + 63) / 64;
  std::uint32_t low[rounds], high[rounds];  // pairs of elements
  float2 cos[rounds], sin[rounds];

  // Where numbers i and half + i are in memory.
  static __device__ __forceinline__ int low_at(int i, std::uint32_t rest) {
    return rest == 0 ? i : number_at(i, half, half - static_cast<int>(rest));
  }
  static __device__ __forceinline__ int high_at(int i, std::uint32_t rest) {
    return rest == 0 ? half + i : number_at(half + i, half, half - static_cast<int>(rest));
  }

  // `all_cos` and `all_sin` are the row's, [head_dim / 2].
  __device__ __forceinline__ void load(const element* from, const float* all_cos, const float* all_sin,
                                       std::uint32_t rest, int lane) {
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
      const int i = r * 64 + lane * 2;
      low[r] = high[r] = 0;
      cos[r] = sin[r] = make_float2(0, 0);
      if (i >= half) continue;
      low[r] = *reinterpret_cast<const std::uint32_t*>(from + low_at(i, rest));
      high[r] = *reinterpret_cast<const std::uint32_t*>(from + high_at(i, rest));
      cos[r] = *reinterpret_cast<const float2*>(all_cos + i);
      sin[r] = *reinterpret_cast<const float2*>(all_sin + i);
    }
  }

  // Computes rotary(norm(head + bias)) for a row of type `rows`. `bias` and `weight` (of the norm) are
  // [head_dim] and may be null. For each even i < head_dim / 2 one lane calls put(i, low, high): `low` are
  // numbers i and i + 1 of the result, `high` are numbers head_dim / 2 + i and + 1, not rounded yet.
  template <class Put>
  __device__ __forceinline__ void turn(dtype rows, const float* bias, const float* weight, float eps,
                                       std::uint32_t rest, int lane, Put put) const {
    float2 a[rounds], b[rounds];
    float squares = 0;
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
      const int i = r * 64 + lane * 2;
      a[r] = b[r] = make_float2(0, 0);
      if (i >= half) continue;
      a[r] = row_floats<pages>(rows, reinterpret_cast<const element*>(&low[r]));
      b[r] = row_floats<pages>(rows, reinterpret_cast<const element*>(&high[r]));
      if (bias) {
        a[r].x += bias[low_at(i, rest)];
        a[r].y += bias[low_at(i, rest) + 1];
        b[r].x += bias[high_at(i, rest)];
        b[r].y += bias[high_at(i, rest) + 1];
      }
      squares += a[r].x * a[r].x + a[r].y * a[r].y + b[r].x * b[r].x + b[r].y * b[r].y;
    }
    const float scale = weight ? rsqrtf(warp_sum(squares) / head_dim + eps) : 1.0f;
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
      const int i = r * 64 + lane * 2;
      if (i >= half) continue;
      if (weight) {
        a[r].x *= scale * weight[low_at(i, rest)];
        a[r].y *= scale * weight[low_at(i, rest) + 1];
        b[r].x *= scale * weight[high_at(i, rest)];
        b[r].y *= scale * weight[high_at(i, rest) + 1];
      }
      const float2 c = cos[r], s = sin[r];
      put(i, make_float2(a[r].x * c.x - b[r].x * s.x, a[r].y * c.y - b[r].y * s.y),
          make_float2(b[r].x * c.x + a[r].x * s.x, b[r].y * c.y + a[r].y * s.y));
    }
  }
};

}  // namespace weir::kernels::cuda
