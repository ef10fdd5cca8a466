// wide_blocks.h — what a block of wide_blocks.cu's products is: its rings in shared memory, how its warps
// round weights.
//
// A block's tile is 128 rows of the weights (the outputs of the product) by `wide` rows of x. For gated the
// rows of gate and up alternate in a tile in groups of eight, so that one thread has both numbers that it
// multiplies.
#pragma once

#include <algorithm>

#include "kernels/cuda/device/wgmma.h"
#include "kernels/cuda/products/block_rounding.h"
#include "kernels/cuda/products/put_sums.h"
#include "kernels/cuda/products/stream_blocks.h"
#include "kernels/cuda/products/stream_tile.h"

namespace weir::kernels::cuda {

// The sizes of a block and of its two rings, for up to `wide` rows of x. How the numbers were chosen on an
// H200 is in docs/measurements/kernels.md, «Quantised weights, 9 rows and more».
template <dtype type, int wide>
struct block_rings {
  // groups: warpgroups that multiply, each 64 rows of the tile. The threads behind them load.
  static constexpr int groups = 2, rows = groups * 64, threads = groups * 128 + 128;
  static constexpr int panel = wide * panel_columns * 2, half = panel / 2;  // bytes
  static constexpr int panels = wide <= 128 ? 2 : 1;                        // of a stage of x
  // Whether the warpgroups take turns on the tensor cores: one of them rounds weights while the other one
  // multiplies. It was a gain for 128 rows of x alone. A turn, or a group of products, is 32 * batch columns.
  static constexpr bool turns = wide == 128;
  static constexpr int batch = turns ? 2 : 1;
  static constexpr int cell = cell_form(type).bytes,
                       cells = rows / 8 * cell;  // bytes: of a cell; of a tile's
  static constexpr int room = static_cast<int>(most_shared) - 1024;
  static constexpr int weights = std::clamp(room / (cells + 2 * panel), 3, 8);  // stages
  static constexpr int xs =
      std::min((room - weights * cells) / (panels * panel), 2 * weights / panels);  // of x
  static constexpr std::uint32_t cells_at = xs * panels * panel, barriers_at = cells_at + weights * cells;
  static constexpr std::size_t bytes = barriers_at + (2 * weights + 2 * xs + 1) * 8;
  static_assert(xs >= 3 && bytes <= most_shared);
  // Registers of a thread: as the compiler gives them to all, then those of threads that load and multiply.
  static constexpr int even = 65536 / threads / 8 * 8, few = 24,
                       many = std::min(even + (even - few) / groups / 8 * 8, 240);
  static constexpr std::size_t parts =
      groups * wide / 8 * 128 * sizeof(float4);  // bytes of the sums of a block
};

struct wide_block_args {
  put_args to;
  float4* parts;      // as in wide_args
  unsigned* arrived;  // as in wide_args
  // across: pairs of blocks that multiply the same weights. tiles: tiles of a pair of blocks. chunks: units
  // of a tile. slabs: slabs of a block's tile in the last dimension of the weights' map.
  std::uint32_t across, tiles, chunks, slabs;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Rounds the warp's weights of columns 32 * j on in two rows of cells: the operands of two products.
template <dtype type>
__device__ __forceinline__ void round_columns(const cell_row<type> (&rows)[2], int j,
                                              std::uint32_t (&w)[2][4]) {
  std::uint32_t pairs[2][4];
#pragma unroll
  for (int s = 0; s < 2; ++s) round_cell(rows[s], j, pairs[s]);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    w[0][i] = pairs[i % 2][i / 2];
    w[1][i] = pairs[i % 2][2 + i / 2];
  }
}
#endif

}  // namespace weir::kernels::cuda
