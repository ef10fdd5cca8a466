// stream_tile.h — a tile of stream_wide.cu's products: its size, and where its sums are written; and what
// wide_blocks.cu and product_wgmma.cu have in common with it: panels, rings, the exchange of sums.
//
// A tile is 64 or 128 rows of the weights (the outputs of the product) by `wide` rows of x. For silu the rows
// of gate and up alternate in a tile in groups of eight, so that one thread has both numbers that it
// multiplies.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/barrier.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/products.h"

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

// Writes output `row` of row `column` of x, or adds to it.
template <dtype type, product_out kind>
__device__ __forceinline__ void put_sum(const wide_args& a, std::uint32_t row, std::uint32_t column,
                                        float v) {
  const std::size_t at = std::size_t{column} * a.n + row;
  if constexpr (kind == product_out::element) static_cast<element*>(a.out)[at] = element_of<type>(v);
  if constexpr (kind == product_out::f32) static_cast<float*>(a.out)[at] = v;
  if constexpr (kind == product_out::add_f32) atomicAdd(static_cast<float*>(a.out) + at, v);
}

// Writes the calling warp's sums of slab `slab`: 16 rows of the weights, or for silu eight of gate and the
// same eight of up.
template <dtype type, product_out kind, int wide>
__device__ __forceinline__ void put_slab(const wide_args& a, std::uint32_t slab,
                                         const float (&sums)[wide / 2]) {
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < wide / 2; ++j) {
    const std::uint32_t column = j / 4 * 8 + lane % 4 * 2 + j % 2;
    const bool upper = j % 4 >= 2;  // rows eight further on
    if (column >= a.m) continue;
    if constexpr (kind == product_out::silu) {
      const std::uint32_t row = slab * 8 + lane / 4;
      if (upper || row >= a.n / 2) continue;
      const float gate = sums[j], up = sums[j + 2];
      static_cast<element*>(a.out)[std::size_t{column} * (a.n / 2) + row] =
          element_of<type>(gate / (1.0f + __expf(-gate)) * up);
    } else {
      const std::uint32_t row = slab * 16 + lane / 4 + upper * 8;
      if (row < a.n) put_sum<type, kind>(a, row, column, sums[j]);
    }
  }
}

// Reads a counter with acquire order.
__device__ __forceinline__ unsigned read_count(const unsigned* at) {
  unsigned v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
  return v;
}

// Where the thread's sums lie in `parts`. `place` is the index of a block and warpgroup, block * groups +
// warpgroup.
template <int wide>
__device__ __forceinline__ float4* part_of(float4* parts, std::uint32_t place) {
  return parts + std::size_t{place} * (wide / 8 * 128) + threadIdx.x % 128;
}

// Leaves the warpgroup's sums at `place`, and counts them for `owner`, the place that writes the tile. All
// threads of the warpgroup call it.
template <int wide, int groups>
__device__ __forceinline__ void leave_part(float4* parts, unsigned* arrived, std::uint32_t place,
                                           std::uint32_t owner, const float (&sums)[wide / 2]) {
  float4* to = part_of<wide>(parts, place);
#pragma unroll
  for (int j = 0; j < wide / 8; ++j)
    __stcg(to + j * 128, make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]));
  __threadfence();
  named_barrier(1 + place % groups, 128);
  if (threadIdx.x % 128 == 0) atomicAdd(arrived + owner, 1);
}

// Adds the sums that were left at `place`.
template <int wide>
__device__ __forceinline__ void add_part(float4* parts, std::uint32_t place, float (&sums)[wide / 2]) {
  const float4* from = part_of<wide>(parts, place);
#pragma unroll
  for (int j = 0; j < wide / 8; ++j) {
    const float4 v = __ldcg(from + j * 128);
    sums[4 * j] += v.x;
    sums[4 * j + 1] += v.y;
    sums[4 * j + 2] += v.z;
    sums[4 * j + 3] += v.w;
  }
}
#endif

}  // namespace weir::kernels::cuda
