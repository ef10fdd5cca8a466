// stream_tile.h — a tile of stream_wide.cu's products: how large it is, and where its sums go.
//
// Gate and up lie in a tile in turns of eight rows, so that a thread has both of what it multiplies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/barrier.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/products.h"

namespace weir::kernels::cuda {

constexpr int panel_columns = 64;               // of a panel: its rows are 128 bytes, swizzled
constexpr std::size_t most_shared = 227 << 10;  // of one block, on 9.0

// `wide`: rows of x, filled up. What suited each best on an H200 is in docs/performance.md, «Products of up
// to 128 rows».
template <int wide>
struct wide_ring {
  static constexpr int groups = wide <= 64 ? 1 : 2;  // warpgroups that multiply, each 64 rows of the tile
  static constexpr int panels = wide <= 32 ? 4 : wide <= 64 ? 2 : 1;  // of a stage
  static constexpr int rows = groups * 64,
                       threads = groups * 128 + 32;  // of a tile; of a block, the last 32 ask
  static constexpr int weights = rows * panel_columns * 2, x = wide * panel_columns * 2;  // bytes of a panel
  static constexpr int stage = panels * (weights + x);
  static constexpr int stages =
      static_cast<int>(most_shared - 1024) / stage;  // behind them two barriers each
  static constexpr std::size_t bytes = stages * (stage + 16);
};

struct wide_args {
  void* out;
  float4* parts;      // [blocks of the grid, groups, wide / 8, 128]: left for who writes a tile
  unsigned* arrived;  // [blocks of the grid, groups]: how many have left theirs
  std::uint32_t n, m, tiles, chunks;
  std::uint32_t slabs;  // of a tile, as the weights' map counts them
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <dtype type, product_out kind>
__device__ __forceinline__ void put_sum(const wide_args& a, std::uint32_t row, std::uint32_t column,
                                        float v) {
  const std::size_t at = std::size_t{column} * a.n + row;
  if constexpr (kind == product_out::element) static_cast<element*>(a.out)[at] = element_of<type>(v);
  if constexpr (kind == product_out::f32) static_cast<float*>(a.out)[at] = v;
  if constexpr (kind == product_out::add_f32) atomicAdd(static_cast<float*>(a.out) + at, v);
}

// `slab`: 16 rows of the weights, or eight gates and their ups; the warp's.
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

__device__ __forceinline__ unsigned read_count(const unsigned* at) {
  unsigned v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
  return v;
}

// `place`: a block's warpgroup.
template <int wide>
__device__ __forceinline__ float4* part_of(const wide_args& a, std::uint32_t place) {
  return a.parts + std::size_t{place} * (wide / 8 * 128) + threadIdx.x % 128;
}

template <int wide>
__device__ __forceinline__ void leave_part(const wide_args& a, std::uint32_t place, std::uint32_t owner,
                                           const float (&sums)[wide / 2]) {
  float4* to = part_of<wide>(a, place);
#pragma unroll
  for (int j = 0; j < wide / 8; ++j)
    __stcg(to + j * 128, make_float4(sums[4 * j], sums[4 * j + 1], sums[4 * j + 2], sums[4 * j + 3]));
  __threadfence();
  meet(1 + place % wide_ring<wide>::groups, 128);
  if (threadIdx.x % 128 == 0) atomicAdd(a.arrived + owner, 1);
}

template <int wide>
__device__ __forceinline__ void add_part(const wide_args& a, std::uint32_t place, float (&sums)[wide / 2]) {
  const float4* from = part_of<wide>(a, place);
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
