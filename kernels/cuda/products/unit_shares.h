// unit_shares.h — how blocks divide a product whose tiles are fewer than blocks, or not a multiple of them
// («stream-K», Osama et al. 2023). A unit of work is one part of K of one tile; every block gets the same
// number of consecutive units, or one more. So a tile may belong to several blocks.
//
// Where tiles are written once, the block with the first part of K writes the tile, and the others leave
// their sums in memory for it. Those blocks compute the shared tile before all others, and the writing block
// computes it last, so that it seldom waits for them. It cannot wait in vain: kernels number their blocks
// from the last one, so the blocks that it waits for have a lower blockIdx and have started before it.
#pragma once

#include <cstdint>

#include "kernels/cuda/device/barrier.h"

namespace weir::kernels::cuda {

// Blocks are numbers from 0 to blocks - 1. units: of all tiles. chunks: of one tile.
struct unit_shares {
  std::uint32_t units, chunks, blocks;

  __device__ __forceinline__ std::uint32_t begin_of(std::uint32_t block) const {
    return block * units / blocks;
  }
  __device__ __forceinline__ std::uint32_t block_of(std::uint32_t unit) const {
    return ((unit + 1) * blocks - 1) / units;
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
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

// Brings the sums of a tile together, whose units from `first` of the tile on the calling warpgroup of
// `block` has added up. Returns whether the warpgroup writes the tile; `sums` then has those of the other
// blocks, too. place_of(block) is the index of the warpgroup of a block in `parts` and in `arrived` (as in
// wide_args). All threads of the warpgroup call it.
template <int wide, int groups, class F>
__device__ __forceinline__ bool gather_sums(const unit_shares& shares, std::uint32_t block,
                                            std::uint32_t tile, std::uint32_t first, float4* parts,
                                            unsigned* arrived, const F& place_of, float (&sums)[wide / 2]) {
  const std::uint32_t own = place_of(block);
  if (first != 0) {
    leave_part<wide, groups>(parts, arrived, own, place_of(shares.block_of(tile * shares.chunks)), sums);
    return false;
  }
  // The number of blocks behind this one that share the tile.
  const std::uint32_t others = shares.block_of(tile * shares.chunks + shares.chunks - 1) - block;
  if (others == 0) return true;
  while (read_count(arrived + own) != others) __nanosleep(20);
  for (std::uint32_t i = 1; i <= others; ++i) add_part<wide>(parts, place_of(block + i), sums);
  named_barrier(1 + own % groups, 128);  // all threads have read the counter
  if (threadIdx.x % 128 == 0) arrived[own] = 0;
  return true;
}
#endif

}  // namespace weir::kernels::cuda
