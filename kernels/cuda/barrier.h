// barrier.h — barriers in shared memory that count arrivals and the bytes of bulk copies (PTX ISA,
// «mbarrier»), from 9.0 on; and where warps of a block meet.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace weir::kernels::cuda {

// `count` threads at the block's barrier of that name: 0 is __syncthreads()'s, 1 and 2 are a warpgroup's own,
// 3 is both's.
__device__ __forceinline__ void meet(std::uint32_t name, std::uint32_t count) {
  asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
// Inits are seen by copies after this.
__device__ __forceinline__ void barrier_inits_end() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// A warp arrives by one of its lanes, behind what all of them did. The racecheck of compute-sanitizer follows
// each thread's own arrivals and does not know that order: for it every lane arrives (docs/debugging.md).
#ifdef WEIR_RACECHECK
constexpr unsigned warp_arrivals = 32;
#else
constexpr unsigned warp_arrivals = 1;
#endif
__device__ __forceinline__ void barrier_arrive_warp(std::uint32_t barrier) {
  __syncwarp();
  if (threadIdx.x % 32 < warp_arrivals) barrier_arrive(barrier);
}
__device__ __forceinline__ void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Until the phase of this parity is over.
__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t over = 0;
  while (!over)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
}

// `bytes` from device to shared memory, counted by the barrier.
__device__ __forceinline__ void copy_bulk(std::uint32_t to, const void* from, std::uint32_t bytes,
                                          std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// A box of a matrix to shared memory; `column` and `row` say where it begins, what lies outside is zeros.
__device__ __forceinline__ void copy_box(std::uint32_t to, const CUtensorMap& from, int column, int row,
                                         std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], "
      "[%4];" ::"r"(to),
      "l"(&from), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
// A box that fills the other three dimensions of a matrix of four, from `slab` on; what is read once leaves
// the second cache first.
__device__ __forceinline__ void copy_slabs_once(std::uint32_t to, const CUtensorMap& from, int column,
                                                int slab, std::uint32_t barrier) {
  constexpr std::uint64_t evict_first = 0x12f0000000000000;
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, 0, 0, %3}], [%4], %5;" ::"r"(to),
      "l"(&from), "r"(column), "r"(slab), "r"(barrier), "l"(evict_first)
      : "memory");
}

}  // namespace weir::kernels::cuda
