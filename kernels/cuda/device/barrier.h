// barrier.h — barriers in shared memory that count arrivals and the bytes of bulk copies (PTX ISA,
// «mbarrier»); the bulk copies that they count; named barriers of a block; and the barrier of a cluster. All
// but the named barriers need compute capability 9.0.
//
// A barrier is 8 bytes in shared memory and is named by its shared-memory address (shared_address in mma.h).
// A phase is over when all arrivals and all expected bytes are there; the next phase then begins. Phases are
// told apart by their parity; the first phase has parity 0.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace weir::kernels::cuda {

// How the L2 cache treats what a copy reads.
constexpr std::uint64_t evict_first = 0x12f0000000000000, evict_normal = 0x1000000000000000;

// Waits until `count` threads of the block, a multiple of 32, have arrived at named barrier `name`. Name 0 is
// the barrier of __syncthreads(); 1 and 2 belong to one warpgroup each, 3 to both. 4 belongs to the warpgroup
// that loads in attention_wgmma.cu; in wide_blocks.cu 4 and 5 are the turns of warpgroups 0 and 1. In
// attention_decode.cu the names from 1 on belong to a pair of warps each.
__device__ __forceinline__ void named_barrier(std::uint32_t name, std::uint32_t count) {
  asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(count) : "memory");
}

// Arrives at named barrier `name` and goes on: `count` counts these threads, too.
__device__ __forceinline__ void named_barrier_arrive(std::uint32_t name, std::uint32_t count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(count) : "memory");
}

// A barrier of all threads of the cluster. What they wrote to shared memory before it is visible after it.
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// The two halves of a barrier of all threads of the cluster, which makes no memory visible: each thread
// arrives, does other things, and waits until all have arrived.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }

// Initialises a barrier whose phases take `arrivals` arrivals each. One thread calls it.
__device__ __forceinline__ void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
// Makes the initialised barriers visible to bulk copies and to the cluster. The initialising thread calls it,
// then the block synchronises.
__device__ __forceinline__ void barrier_inits_end() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives at the barrier, for the calling thread.
__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// The arrivals of one warp at a barrier: one lane arrives for all, after a __syncwarp(). The racecheck of
// compute-sanitizer follows only each thread's own arrivals, so that every lane arrives in builds for it
// (docs/debugging.md).
#ifdef WEIR_RACECHECK
constexpr unsigned warp_arrivals = 32;
#else
constexpr unsigned warp_arrivals = 1;
#endif
// Arrives for the warp, with all that its lanes did before. All lanes call it.
__device__ __forceinline__ void barrier_arrive_warp(std::uint32_t barrier) {
  __syncwarp();
  if (threadIdx.x % 32 < warp_arrivals) barrier_arrive(barrier);
}
// Arrives, for the calling thread, at the same barrier of block `rank` of the cluster. What the thread did
// before is not made visible to that block: it is for memory that asynchronous copies or products have read.
__device__ __forceinline__ void barrier_arrive_at(std::uint32_t barrier, std::uint32_t rank) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
// Arrives, and makes the present phase wait for `bytes` more bytes of bulk copies.
__device__ __forceinline__ void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Waits until the phase of parity `parity` is over: returns at once where the present phase has the other
// parity.
__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t over = 0;
  while (!over)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
}

// Begins to copy `bytes` bytes from memory of the device to shared memory; the barrier counts them. One
// thread calls it.
// REQUIRES: addresses and `bytes` are multiples of 16
__device__ __forceinline__ void copy_bulk(std::uint32_t to, const void* from, std::uint32_t bytes,
                                          std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// Begins to copy a box of a matrix, as large as its map says, to shared memory. The box begins at `column`
// and `row`; what lies outside the matrix becomes zeros. The barrier counts the bytes.
__device__ __forceinline__ void copy_box(std::uint32_t to, const CUtensorMap& from, int column, int row,
                                         std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], "
      "[%4];" ::"r"(to),
      "l"(&from), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
// The same into the shared memory of every block of the cluster whose bit in `blocks` is set, at the same
// address; the same barrier of each of these blocks counts the bytes.
__device__ __forceinline__ void copy_box_to(std::uint16_t blocks, std::uint32_t to, const CUtensorMap& from,
                                            int column, int row, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&from), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
      : "memory");
}
// copy_box() of a matrix with four dimensions: the box begins at `column`, at 0 in the second dimension, at
// `plane` in the third, and at `slab` in the fourth.
__device__ __forceinline__ void copy_slabs(std::uint32_t to, const CUtensorMap& from, int column, int plane,
                                           int slab, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, 0, "
      "%3, %4}], [%5];" ::"r"(to),
      "l"(&from), "r"(column), "r"(plane), "r"(slab), "r"(barrier)
      : "memory");
}
// copy_box() of a matrix with four dimensions: the box begins at `column`, at 0 in the second and third
// dimension, and at `slab` in the fourth. The data is marked to be evicted from the L2 cache first, as it is
// read only once.
__device__ __forceinline__ void copy_slabs_once(std::uint32_t to, const CUtensorMap& from, int column,
                                                int slab, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, 0, 0, %3}], [%4], %5;" ::"r"(to),
      "l"(&from), "r"(column), "r"(slab), "r"(barrier), "l"(evict_first)
      : "memory");
}

// The same, with a hint for the L2 cache, into the shared memory of several blocks (copy_box_to).
__device__ __forceinline__ void copy_slabs_to(std::uint16_t blocks, std::uint32_t to, const CUtensorMap& from,
                                              int column, int slab, std::uint32_t barrier,
                                              std::uint64_t hint) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      ".L2::cache_hint [%0], [%1, {%2, 0, 0, %3}], [%4], %5, %6;" ::"r"(to),
      "l"(&from), "r"(column), "r"(slab), "r"(barrier), "h"(blocks), "l"(hint)
      : "memory");
}

}  // namespace weir::kernels::cuda
