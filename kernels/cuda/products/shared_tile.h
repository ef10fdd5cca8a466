// shared_tile.h — what tile_product.cu and tile_blocks.cu have in common: copies of tiles that end within
// them, and how blocks that share the K of a tile bring their sums together.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::kernels::cuda {

// Begins to copy 16 bytes to shared memory, or writes zeros there.
__device__ __forceinline__ void copy_or_zeros(std::uint32_t to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}

// Stores the block's sums of a tile that the blocks of gridDim.z share. Returns whether the block is the last
// one of the tile; its sums are then those of all, added in order. `parts` is [tiles, gridDim.z, quads,
// threads]; `arrived` [tiles] counts the blocks that are done, and is zero between kernels.
template <int quads, int threads>
__device__ __forceinline__ bool join_tile(float4* parts, unsigned* arrived, float (&sums)[quads][4]) {
  __shared__ bool last;
  const std::uint32_t tile = blockIdx.y * gridDim.x + blockIdx.x;
  float4* all = parts + std::size_t{tile} * gridDim.z * quads * threads + threadIdx.x;
  float4* mine = all + std::size_t{blockIdx.z} * quads * threads;
#pragma unroll
  for (int i = 0; i < quads; ++i)
    __stcg(mine + i * threads, make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(arrived + tile, 1) + 1 == gridDim.z;
    if (last) arrived[tile] = 0;
    __threadfence();
  }
  __syncthreads();
  if (!last) return false;
#pragma unroll
  for (int i = 0; i < quads; ++i) sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0;
  for (unsigned part = 0; part < gridDim.z; ++part)
#pragma unroll
    for (int i = 0; i < quads; ++i) {
      const float4 v = __ldcg(all + (std::size_t{part} * quads + i) * threads);
      sums[i][0] += v.x;
      sums[i][1] += v.y;
      sums[i][2] += v.z;
      sums[i][3] += v.w;
    }
  return true;
}

}  // namespace weir::kernels::cuda
