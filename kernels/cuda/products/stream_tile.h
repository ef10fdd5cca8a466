// stream_tile.h — a tile of stream_wide.cu's products, and what wide_blocks.cu and product_wgmma.cu have in
// common with it: panels and rings.
//
// A tile is 64 or 128 rows of the weights (the outputs of the product) by `wide` rows of x. For gated the
// rows of gate and up alternate in a tile in groups of eight, so that one thread has both numbers that it
// multiplies.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace weir::kernels::cuda {

constexpr int panel_columns = 64;               // of a panel, whose rows are 128 bytes, swizzled
constexpr std::size_t most_shared = 227 << 10;  // shared memory of one block, on 9.0

// How tensor maps name elements of either type, and the order in which a panel stores the units of a row.
constexpr CUtensorMapDataType elements_as = CU_TENSOR_MAP_DATA_TYPE_UINT16;
constexpr CUtensorMapSwizzle swizzled = CU_TENSOR_MAP_SWIZZLE_128B;

// The sizes of a block and of its ring in shared memory, for up to `wide` rows of x. How the numbers were
// chosen on an H200 is in docs/measurements/kernels.md, «Products of up to 128 rows».
template <int wide>
struct wide_ring {
  static constexpr int groups = wide <= 64 ? 1 : 2;  // warpgroups that multiply, each 64 rows of the tile
  static constexpr int panels = wide <= 32 ? 4 : wide <= 64 ? 2 : 1;  // of a stage
  // rows: rows of weights in a tile. threads: threads of a block, the last 32 of which load.
  static constexpr int rows = groups * 64, threads = groups * 128 + 32;
  static constexpr int weights = rows * panel_columns * 2, x = wide * panel_columns * 2;  // bytes of a panel
  static constexpr int stage = panels * (weights + x);  // bytes: panels of weights, then those of x
  static constexpr int stages = static_cast<int>(most_shared - 1024) / stage;
  static constexpr std::size_t bytes = stages * (stage + 16);  // all stages, then two barriers for each
};

// The arguments of the kernel besides the maps of w and x.
struct wide_args {
  void* out;
  float4* parts;      // [blocks of the grid, groups, wide / 8, 128]: sums for a tile of another block
  unsigned* arrived;  // [blocks of the grid, groups]: how many blocks have left sums for the tile of this one
  // n: rows of w. m: rows of x. tiles: tiles of the product. chunks: stages that a tile takes.
  std::uint32_t n, m, tiles, chunks;
  std::uint32_t slabs;  // slabs of a tile in the last dimension of the weights' map
  activation gate;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// A stage of the ring, and the parity of the iteration over the ring.
template <int stages>
struct turn_of_ring {
  int stage = 0;
  std::uint32_t phase = 0;
  __device__ __forceinline__ int before() const { return (stage ? stage : stages) - 1; }
  __device__ __forceinline__ void next() {
    if (++stage < stages) return;
    stage = 0;
    phase ^= 1;
  }
};
#endif

}  // namespace weir::kernels::cuda
