// wgmma.h — what a kernel of warpgroups is made of, for 9.0a: barriers in shared memory, tensor copies that
// complete on them, and products of tiles that lie there (PTX ISA, «mbarrier», «cp.async.bulk.tensor»,
// «wgmma.mma_async»).
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/cuda/mma.h"

// True where the code is built for 9.0a, which these instructions need.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define WEIR_WGMMA 1
#else
#define WEIR_WGMMA 0
#endif

#if WEIR_WGMMA
namespace weir::kernels::cuda {

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// After the last of them: what follows, copies too, sees them.
__device__ __forceinline__ void barriers_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, std::uint32_t phase) {
  std::uint32_t done = 0;
  while (!done)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier), "r"(phase)
        : "memory");
}

// A box of a map at the coordinates given, first the fastest; parts outside are zeros.
__device__ __forceinline__ void copy_box(std::uint32_t to, const CUtensorMap& from, int c0, int c1,
                                         std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], "
      "[%4];" ::"r"(to),
      "l"(&from), "r"(c0), "r"(c1), "r"(barrier)
      : "memory");
}
// The same of data that is read once: it leaves the second cache first.
__device__ __forceinline__ void copy_box_once(std::uint32_t to, const CUtensorMap& from, int c0, int c1,
                                              int c2, std::uint32_t barrier) {
  constexpr std::uint64_t evict_first = 0x12f0000000000000;
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
      "[%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(&from), "r"(c0), "r"(c1), "r"(c2), "r"(barrier), "l"(evict_first)
      : "memory");
}

// Rows of 128 bytes, eight of them 1,024 bytes, in the swizzle that copies write: what describes such a tile,
// and how far the next 16 columns are.
__device__ __forceinline__ std::uint64_t tile_at(std::uint32_t shared) {
  return (shared & 0x3ffff) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{64} << 32 | std::uint64_t{1} << 62;
}
constexpr std::uint64_t next_columns = 2;

__device__ __forceinline__ void group_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void group_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int left>
__device__ __forceinline__ void groups_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}
// The compiler may not use a sum before the groups that make it are waited for.
template <int count>
__device__ __forceinline__ void hold(float (&c)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(c[i])::"memory");
}

// c [64, n] += a [64, 16] · b [n, 16]ᵀ by the four warps of a group. Lane of warp w: c[4 j + i] is of row
// 16 w + lane/4 (+ 8 for i = 2, 3), column 8 j + lane%4*2 (+ 1 for i = 1, 3).
template <int n>
__device__ void multiply_group(float (&c)[n / 2], std::uint64_t a, std::uint64_t b);

template <>
__device__ __forceinline__ void multiply_group<8>(float (&c)[4], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3"
      "}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_group<16>(float (&c)[8], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7"
      "}, %8, %9, 1, 1, 1, 0, 0;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
      : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_group<32>(float (&c)[16], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
      "}, %16, %17, 1, 1, 1, 0, 0;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
        "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
      : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_group<48>(float (&c)[24], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n48k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23"
      "}, %24, %25, 1, 1, 1, 0, 0;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
        "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]),
        "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23])
      : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void multiply_group<64>(float (&c)[32], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
      "%25,%26,%27,%28,%29,%30,%31"
      "}, %32, %33, 1, 1, 1, 0, 0;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
        "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]),
        "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]),
        "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
        "+f"(c[30]), "+f"(c[31])
      : "l"(a), "l"(b));
}

}  // namespace weir::kernels::cuda
#endif
