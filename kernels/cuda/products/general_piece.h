// general_piece.h — a warp's piece of K in products of few rows with plain weights, which go from memory
// straight into registers as operands of mma() (stream_general.cu, and experts/stream.cu).
#pragma once

#include "kernels/cuda/device/mma.h"

namespace weir::kernels::cuda {

constexpr int piece_chunk = 32;  // columns; four lanes have 8 of them each

// The sizes for up to `wide` rows of x. Two pieces in registers leave room for two blocks on a
// multiprocessor.
template <int wide>
struct piece_size {
  static constexpr int units = wide / 8;            // of 8 rows of x
  static constexpr int chunks = wide <= 8 ? 4 : 2;  // of a piece
  static constexpr std::uint32_t columns = chunks * piece_chunk;
};

// Reads 16 bytes that are read only once.
__device__ __forceinline__ uint4 load_once(const element* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}
// Reads 16 bytes that other blocks read, too.
__device__ __forceinline__ uint4 load_often(const element* from) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// A lane's part of a piece: of each chunk eight columns, from lane % 4 * 8 on, in rows lane / 4 and
// lane / 4 + 8 of the tile and in row lane / 4 of each unit of x. The order of k within an instruction
// is free, as long as x and the weights have the same order.
template <int wide>
struct plain_piece {
  using size = piece_size<wide>;
  uint4 low[size::chunks], high[size::chunks], x[size::units][size::chunks];

  // Loads piece `at` of K. `w` are the lane's two rows of the weights; `x_at` is row lane / 4 of x.
  // x has `m` rows of `k` columns.
  __device__ __forceinline__ void load(std::uint32_t k, std::uint32_t m, const element* const (&w)[2],
                                       const element* x_at, std::uint32_t at, std::uint32_t lane) {
    constexpr uint4 zeros = {0, 0, 0, 0};
#pragma unroll
    for (int c = 0; c < size::chunks; ++c) {
      const std::uint32_t column = at * size::columns + c * piece_chunk + lane % 4 * 8;
      const bool there = column < k;
      low[c] = there ? load_once(w[0] + column) : zeros;
      high[c] = there ? load_once(w[1] + column) : zeros;
#pragma unroll
      for (int u = 0; u < size::units; ++u)
        x[u][c] = there && lane / 4 + u * 8 < m ? load_often(x_at + std::size_t{k} * u * 8 + column) : zeros;
    }
  }

  template <dtype type>
  __device__ __forceinline__ void multiply(float (&sums)[size::units][4]) const {
#pragma unroll
    for (int c = 0; c < size::chunks; ++c)
#pragma unroll
      for (int u = 0; u < size::units; ++u) {
        mma<type>(sums[u], low[c].x, high[c].x, low[c].y, high[c].y, x[u][c].x, x[u][c].y);
        mma<type>(sums[u], low[c].z, high[c].z, low[c].w, high[c].w, x[u][c].z, x[u][c].w);
      }
  }
};

}  // namespace weir::kernels::cuda
