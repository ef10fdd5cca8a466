// mma.h — the tensor-core instructions that our kernels use for one warp, and asynchronous copies (PTX ISA,
// «mma.m16n8k16», «ldmatrix», «cp.async»).
#pragma once

#include <cstdint>

#include "kernels/cuda/element.h"

namespace weir::kernels::cuda {

// The address of `p`, which is in shared memory, as instructions take it.
__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// c += a · b for c [16, 8], a [16, 16], b [16, 8]. All lanes call it. A register of a or b holds two
// elements. With r = lane / 4 and q = lane % 4 * 2 a lane holds
//   c[0], c[1]  row r, columns q and q + 1
//   c[2], c[3]  row r + 8, columns q and q + 1
//   a0, a1      rows r and r + 8, columns q and q + 1
//   a2, a3      rows r and r + 8, columns q + 8 and q + 9
//   b0, b1      column r, rows q and q + 1; rows q + 8 and q + 9
template <dtype type>
__device__ __forceinline__ void mma(float (&c)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2,
                                    std::uint32_t a3, std::uint32_t b0, std::uint32_t b1) {
#define WEIR_MMA(name)                                                      \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." name "." name       \
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])             \
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
  if constexpr (type == dtype::bf16)
    WEIR_MMA("bf16");
  else
    WEIR_MMA("f16");
#undef WEIR_MMA
}

// Loads four matrices of 8 x 8 elements from shared memory, one into each register, as operands of mma().
// Lane i passes the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

// The same with each matrix transposed.
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

// Begins to copy 16 bytes from memory of the device to shared memory.
__device__ __forceinline__ void copy_async(std::uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Closes the group of this thread's copies that were begun since its last group.
__device__ __forceinline__ void copies_end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `left` groups of this thread, the latest ones, are not done.
template <int left>
__device__ __forceinline__ void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

}  // namespace weir::kernels::cuda
