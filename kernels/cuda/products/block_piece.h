// block_piece.h — a warp's piece of K in products of up to 8 rows with quantised weights, which go from
// memory straight into registers (stream_blocks.cu, and experts/stream_blocks.cu).
#pragma once

#include "kernels/cuda/products/block_codes.h"

namespace weir::kernels::cuda {

// Two cells at one place of K, one of each slab of the tile, and the elements of x that they multiply. Of x a
// lane has row lane / 4, in the columns in which it has weights (block_layout.h).
template <dtype type>
struct cell_piece {
  cell_row<type> low, high;
  uint2 x[4][2];

  __device__ __forceinline__ void load_weights(const unsigned char* const (&w)[2], std::uint32_t at,
                                               std::uint32_t lane) {
    low.load(w[0] + std::size_t{at} * cell_form(type).bytes, lane);
    high.load(w[1] + std::size_t{at} * cell_form(type).bytes, lane);
  }
  __device__ __forceinline__ void load_x(const element* all, std::uint32_t k, std::uint32_t m,
                                         std::uint32_t at, std::uint32_t lane) {
    const element* from = all + std::size_t{lane / 4} * k + at * cell_columns + lane % 4 * 4;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t column = at * cell_columns + i * 16;
      x[i / 2][i % 2] = make_uint2(0, 0);
      if (column < k && lane / 4 < m) x[i / 2][i % 2] = __ldcg(reinterpret_cast<const uint2*>(from + i * 16));
    }
  }

  __device__ __forceinline__ void multiply(float (&sums)[4]) const {
    constexpr block_format f = format_of(type);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::uint32_t a[4], b[4];
      low.expand(j, a);
      high.expand(j, b);
#pragma unroll
      for (int h = 0; h < 32 / f.group; ++h) {
        const float s = low.scale(j, h), t = high.scale(j, h);
        const uint2 y = x[j][h], z = x[j][1];
        float c[4];
        mma_from(c, {a[2 * h], b[2 * h], a[2 * h + 1], b[2 * h + 1]}, y, 0, 0, 0, 0);
        if constexpr (f.group == 32) mma_more(c, {a[2], b[2], a[3], b[3]}, z);
        sums[0] += s * c[0];
        sums[1] += s * c[1];
        sums[2] += t * c[2];
        sums[3] += t * c[3];
        if constexpr (f.minima) {  // the sums of x over the group, by a product with ones
          float all[4];
          mma_ones(all, y);
          if constexpr (f.group == 32) mma_more_ones(all, z);
          const float lowest = low.minimum(j, h), other = high.minimum(j, h);
          sums[0] += lowest * all[0];
          sums[1] += lowest * all[1];
          sums[2] += other * all[0];
          sums[3] += other * all[1];
        }
      }
    }
  }
};

}  // namespace weir::kernels::cuda
