// wgmma_tile.h — a tile of product_wgmma.cu's products: how the blocks of a cluster divide it, the ring
// through which its data come, and where its sums are written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/products/put_sums.h"
#include "kernels/cuda/products/stream_tile.h"

namespace weir::kernels::cuda {

// How a block computes its part of a tile. `x_groups_`: warpgroups that multiply, each 64 rows of x.
// `blocks_`: blocks of a cluster, which have the same weights.
template <dtype type_, product_out kind_, int x_groups_, int blocks_, int w_rows_>
struct wgmma_plan {
  static constexpr dtype type = type_;
  static constexpr product_out kind = kind_;
  static constexpr int groups = x_groups_, blocks = blocks_, w_rows = w_rows_;
  static constexpr int x_rows = groups * 64, threads = groups * 128 + 128;
  static constexpr int planes = kind == product_out::gated ? 2 : 1;  // gate and up
  static constexpr int slabs = w_rows / (8 * planes);               // eight rows of each plane
  static constexpr int x_bytes = x_rows * panel_columns * 2, w_bytes = w_rows * panel_columns * 2;
  static constexpr int stage = x_bytes + w_bytes;
  static constexpr int stages = static_cast<int>(most_shared / (stage + 16));
  static constexpr std::size_t bytes = stages * (stage + 16);  // all stages, then two barriers for each
};

// The arguments of the kernel besides the maps of w and x.
struct wgmma_args {
  void* out;
  std::uint32_t width, m;        // columns and rows of the output
  std::uint32_t x_tiles;         // tiles along x; those with the same weights follow one another
  std::uint32_t adders;          // clusters that share the K of a tile
  std::uint32_t shares, chunks;  // tiles of the product times `adders`; stages of all of K
  std::uint64_t weights_hint;    // how the L2 cache treats the weights
  activation gate;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ std::uint32_t rank_in_cluster() {
  std::uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

// Where a block is: its rank in the cluster, the index of the cluster, and the number of clusters.
struct block_place {
  std::uint32_t rank, cluster, clusters;
};

// The ring of a block: shared-memory addresses.
template <class plan>
struct wgmma_ring {
  std::uint32_t base;
  __device__ std::uint32_t x(int stage) const { return base + stage * plan::stage; }
  __device__ std::uint32_t w(int stage) const { return x(stage) + plan::x_bytes; }
  __device__ std::uint32_t full(int stage) const { return base + plan::stages * plan::stage + stage * 8; }
  __device__ std::uint32_t empty(int stage) const { return full(stage + plan::stages); }
};

// What a block computes for share `index`: its first row of x, its first slab of the weights, and the stages
// [begin, end) of K.
template <class plan>
struct wgmma_share {
  std::uint32_t row, slab, begin, end;
  __device__ __forceinline__ wgmma_share(const wgmma_args& a, std::uint32_t index, std::uint32_t rank) {
    const std::uint32_t tile = index / a.adders, part = index % a.adders;
    row = (tile % a.x_tiles * plan::blocks + rank) * plan::x_rows;
    slab = tile / a.x_tiles * plan::slabs;
    begin = part * a.chunks / a.adders;
    end = (part + 1) * a.chunks / a.adders;
  }
};

// Two outputs that lie side by side, from the sums of eight rows of the weights, or of eight of gate at
// `sums` and the same eight of up at sums + 4.
template <class plan>
__device__ __forceinline__ std::uint32_t outputs_of(const wgmma_args& a, const float* sums) {
  if constexpr (plan::kind == product_out::gated) {
    return pair_of<plan::type>(gated_quickly(a.gate, sums[0], sums[4]),
                               gated_quickly(a.gate, sums[1], sums[5]));
  } else {
    return pair_of<plan::type>(sums[0], sums[1]);
  }
}

// Writes the thread's outputs of row `row` as elements; those of slab j come from sums + 4 * planes * j.
// Neighbouring lanes exchange what they have of two slabs, so that every write is 8 bytes. All lanes of a
// warp call it.
template <class plan>
__device__ __forceinline__ void put_elements(const wgmma_args& a, std::uint32_t row, std::uint32_t slab,
                                             const float* sums) {
  static_assert(plan::slabs % 2 == 0);
  const bool odd = threadIdx.x % 2 != 0;
  element* to = static_cast<element*>(a.out) + std::size_t{row} * a.width;
#pragma unroll
  for (int j = 0; j < plan::slabs; j += 2) {
    const std::uint32_t first = outputs_of<plan>(a, sums + 4 * plan::planes * j),
                        second = outputs_of<plan>(a, sums + 4 * plan::planes * (j + 1)),
                        other = __shfl_xor_sync(~0u, odd ? first : second, 1);
    const std::uint32_t column = (slab + j + odd) * 8 + threadIdx.x % 4 / 2 * 4;
    if (row < a.m && column < a.width)
      *reinterpret_cast<uint2*>(to + column) = odd ? make_uint2(other, second) : make_uint2(first, other);
  }
}

// Adds the thread's sums of row `row` to the output.
template <class plan>
__device__ __forceinline__ void add_sums(const wgmma_args& a, std::uint32_t row, std::uint32_t slab,
                                         const float* sums) {
  if (row >= a.m) return;
  float* to = static_cast<float*>(a.out) + std::size_t{row} * a.width;
#pragma unroll
  for (int j = 0; j < plan::slabs; ++j) {
    const std::uint32_t column = (slab + j) * 8 + threadIdx.x % 4 * 2;
    if (column < a.width) add_pair(to + column, sums[4 * j], sums[4 * j + 1]);
  }
}

#endif

}  // namespace weir::kernels::cuda
