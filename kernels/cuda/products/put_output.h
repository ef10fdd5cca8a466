// put_output.h — how kernels whose sums lie in registers or in shared memory write outputs one by one, and
// how the blocks of stream_blocks.cu and stream_general.cu finish a tile.
#pragma once

#include "kernels/cuda/element.h"
#include "kernels/cuda/products/gate.h"
#include "kernels/cuda/products/products.h"

namespace weir::kernels::cuda {

// Writes output `at` of `out`, or adds to it. REQUIRES: `kind` is not gated, unless `v` is what gated() gave
template <dtype type>
__device__ __forceinline__ void put_output(void* out, product_out kind, std::size_t at, float v) {
  if (kind == product_out::f32)
    static_cast<float*>(out)[at] = v;
  else if (kind == product_out::add_f32)
    static_cast<float*>(out)[at] += v;
  else
    static_cast<element*>(out)[at] = element_of<type>(v);
}

// Where the outputs of a product go, whose weights have n rows. stride: from one row of `out` to the next.
struct product_outputs {
  void* out;
  std::uint32_t n, m, stride;
  product_out kind;
  activation gate;
};

// Adds the sums of a block's warps of tile blockIdx.x, 16 rows of the weights by `wide` rows of x, and writes
// the outputs. For gated eight of these rows are of gate, and the same eight of up. `parts` is [warps, wide /
// 8, 32 lanes, 4], the accumulators of mma().
template <dtype type, int warps, int wide>
__device__ __forceinline__ void put_tile(const product_outputs& to, const float* parts) {
  constexpr int rows = 16, tile = wide * rows;
  const auto sum_of = [&](int e) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += parts[w * tile + e];
    return sum;
  };
  for (int e = static_cast<int>(threadIdx.x); e < tile; e += warps * 32) {
    const int lane = e / 4 % 32, j = e % 4;
    const auto column = static_cast<std::uint32_t>(e / 128 * 8 + lane % 4 * 2 + j % 2);
    if (column >= to.m) continue;
    const auto put = [&](std::uint32_t row, float v) {
      put_output<type>(to.out, to.kind, std::size_t{column} * to.stride + row, v);
    };
    if (to.kind == product_out::gated) {
      if (j >= 2) continue;
      const float gate = sum_of(e), up = sum_of(e + 2);
      put(blockIdx.x * 8 + lane / 4, gated(to.gate, gate, up));
    } else {
      const std::uint32_t row = blockIdx.x * rows + lane / 4 + (j >= 2 ? 8 : 0);
      if (row < to.n) put(row, sum_of(e));
    }
  }
}

}  // namespace weir::kernels::cuda
