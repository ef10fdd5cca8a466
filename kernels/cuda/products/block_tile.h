// block_tile.h — a tile of a product with quantised weights: rows of x in shared memory, and cells that warps
// round to bf16 in registers and multiply (tile_blocks.cu, and experts/tile_blocks.cu).
#pragma once

#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/products/block_rounding.h"

namespace weir::kernels::cuda {

constexpr int tile_row_units = cell_columns / 8;  // of 16 bytes in a row of x of a stage: 128 columns

// The place of unit `unit` of row `row` of a stage. Units are permuted by the row in pairs, so that four rows
// that are read at once, 32 bytes of each, lie in different banks.
__device__ __forceinline__ std::uint32_t tile_place(std::uint32_t row, std::uint32_t unit) {
  return row * tile_row_units + (unit ^ (row & 3) << 1);
}

// The cells of a warp's tile at one place of K.
template <dtype type>
struct tile_weights {
  cell_row<type> rows[2];
  __device__ __forceinline__ void load(const unsigned char* const (&w)[2], std::uint32_t cell,
                                       std::uint32_t lane) {
#pragma unroll
    for (int s = 0; s < 2; ++s) rows[s].load(w[s] + std::size_t{cell} * cell_form(type).bytes, lane);
  }
};

template <dtype type, int units>
__device__ __forceinline__ void multiply_tile(const tile_weights<type>& w, const unsigned char* x,
                                              float (&sums)[units][4]) {
  const std::uint32_t lane = threadIdx.x % 32;
  // Where the lane reads its four elements of row lane / 4 in columns 16 * i to 16 * i + 15: tile_place()
  // permutes these units. The other rows and the other half of the columns are at a fixed distance.
  const unsigned char* at[4];
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i)
    at[i] = x + tile_place(lane / 4, i * 2 + lane % 4 / 2) * 16 + lane % 2 * 8;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    std::uint32_t a[2][4];
#pragma unroll
    for (int s = 0; s < 2; ++s) round_cell(w.rows[s], j, a[s]);
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int u = 0; u < units; ++u) {
        const uint2 y =
            *reinterpret_cast<const uint2*>(at[j % 2 * 2 + h] + (u * 8 * tile_row_units + j / 2 * 8) * 16);
        mma_more(sums[u], {a[0][2 * h], a[1][2 * h], a[0][2 * h + 1], a[1][2 * h + 1]}, y);
      }
  }
}

}  // namespace weir::kernels::cuda
