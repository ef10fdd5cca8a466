// wgmma.h — asynchronous products of a warpgroup (four warps), on 9.0a: the warps go on while the product is
// computed (PTX ISA, «Asynchronous warpgroup level matrix instructions»).
//
// The result c is [64, n] in registers. A thread holds rows 16 * warp + lane / 4 and the one 8 behind it, and
// of each 8 columns those at lane % 4 * 2 and + 1: c[columns / 8 * 4 + (second row ? 2 : 0) + (second column
// ? 1 : 0)]. Between a product and wait_products() nothing may read or write its registers.
//
// Every function is called by all threads of the warpgroup.
#pragma once

#include <cstdint>

#include "kernels/tensor.h"

namespace weir::kernels::cuda {

// The descriptor of a matrix in shared memory that is stored in panels of 64 columns: rows of 128 bytes, with
// the 128-byte swizzle; one panel begins `panel` bytes behind the other. Where k runs along the rows ([rows,
// k]), `panel` is not used, and the caller adds the distance itself. Where k runs across the rows ([k, n]),
// the panels are the steps along n. Adding 2 to a descriptor moves it 16 columns along the row, adding 128
// moves it by 16 rows.
__device__ __forceinline__ std::uint64_t panels_at(std::uint32_t address, std::uint32_t panel) {
  return std::uint64_t{1} << 62 | std::uint64_t{1024 >> 4} << 32 | std::uint64_t{panel >> 4} << 16 |
         (address & 0x3ffff) >> 4;
}

// Changes the number of registers of each thread to `count`, a multiple of 8: gives the others back, or takes
// more when other warpgroups of the block have given theirs back. The kernel has __launch_bounds__ with a
// smallest number of blocks.
template <int count>
__device__ __forceinline__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// Orders earlier accesses to the registers before the products that follow; called in front of the first of
// them.
__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Closes the group of the products that were begun since the last group.
__device__ __forceinline__ void products_end_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most `left` groups, the latest ones, are not done.
template <int left>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

// The same, and tells the compiler that `c` has changed: for results that are read next.
template <int left, int n>
__device__ __forceinline__ void wait_products(float (&c)[n]) {
  wait_products<left>();
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(c[i])::"memory");
}

// The n registers of c as asm operands, and their names in the asm text, from %0 on.
#define WEIR_C4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define WEIR_C8(i) WEIR_C4(i), WEIR_C4(i + 4)
#define WEIR_C16(i) WEIR_C8(i), WEIR_C8(i + 8)
#define WEIR_C24(i) WEIR_C16(i), WEIR_C8(i + 16)
#define WEIR_C32(i) WEIR_C16(i), WEIR_C16(i + 16)
#define WEIR_C48(i) WEIR_C32(i), WEIR_C16(i + 32)
#define WEIR_C64(i) WEIR_C32(i), WEIR_C32(i + 32)
#define WEIR_C96(i) WEIR_C64(i), WEIR_C32(i + 64)
#define WEIR_C112(i) WEIR_C64(i), WEIR_C48(i + 64)
#define WEIR_C128(i) WEIR_C64(i), WEIR_C64(i + 64)
#define WEIR_LIST4 "%0, %1, %2, %3"
#define WEIR_LIST8 WEIR_LIST4 ", %4, %5, %6, %7"
#define WEIR_LIST16 WEIR_LIST8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define WEIR_LIST24 WEIR_LIST16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define WEIR_LIST32 WEIR_LIST24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define WEIR_LIST48 \
  WEIR_LIST32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WEIR_LIST64 \
  WEIR_LIST48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WEIR_LIST96                                                                                 \
  WEIR_LIST64                                                                                       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82" \
  ", %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WEIR_LIST112                                                                              \
  WEIR_LIST96                                                                                     \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define WEIR_LIST128                                                                              \
  WEIR_LIST112                                                                                    \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define WEIR_SS(name, n, count, a_at, b_at, add_at)                                                 \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add_at                                             \
               ", 0;\n"                                                                             \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32." name "." name " {" WEIR_LIST##count \
               "}, " a_at ", " b_at ", p, 1, 1, 0, 0; }"                                            \
               : WEIR_C##count(0)                                                                   \
               : "l"(a), "l"(b), "r"(add))
#define WEIR_RS(name, n, count, a_at, b_at, turned)                                                 \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" n "k16.f32." name "." name " {" WEIR_LIST##count \
               "}, {" a_at "}, " b_at ", 1, 1, 1, " turned ";"                                      \
               : WEIR_C##count(0)                                                                   \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

// Begins c = a · bᵀ, or c += a · bᵀ where `add` is not 0: a [64, 16] and b [n, 16] are descriptors
// (panels_at).
#define WEIR_MULTIPLY_SS(n, count, a_at, b_at, add_at)                                                       \
  template <dtype type>                                                                                      \
  __device__ __forceinline__ void multiply_ss(float(&c)[count], std::uint64_t a, std::uint64_t b, int add) { \
    if constexpr (type == dtype::bf16)                                                                       \
      WEIR_SS("bf16", n, count, a_at, b_at, add_at);                                                         \
    else                                                                                                     \
      WEIR_SS("f16", n, count, a_at, b_at, add_at);                                                          \
  }
WEIR_MULTIPLY_SS("8", 4, "%4", "%5", "%6")
WEIR_MULTIPLY_SS("16", 8, "%8", "%9", "%10")
WEIR_MULTIPLY_SS("32", 16, "%16", "%17", "%18")
WEIR_MULTIPLY_SS("48", 24, "%24", "%25", "%26")
WEIR_MULTIPLY_SS("64", 32, "%32", "%33", "%34")
WEIR_MULTIPLY_SS("96", 48, "%48", "%49", "%50")
WEIR_MULTIPLY_SS("128", 64, "%64", "%65", "%66")
WEIR_MULTIPLY_SS("192", 96, "%96", "%97", "%98")
WEIR_MULTIPLY_SS("224", 112, "%112", "%113", "%114")
WEIR_MULTIPLY_SS("256", 128, "%128", "%129", "%130")

// Begins c += a · b: a [64, 16] in registers, for each warp as mma() has it, b a descriptor (panels_at): [16,
// n] for multiply_rs, and [n, 16] for multiply_rows.
#define WEIR_MULTIPLY_RS(function, n, count, a_at, b_at, turned)                                        \
  template <dtype type>                                                                                 \
  __device__ __forceinline__ void function(float(&c)[count], const std::uint32_t* a, std::uint64_t b) { \
    if constexpr (type == dtype::bf16)                                                                  \
      WEIR_RS("bf16", n, count, a_at, b_at, turned);                                                    \
    else                                                                                                \
      WEIR_RS("f16", n, count, a_at, b_at, turned);                                                     \
  }
WEIR_MULTIPLY_RS(multiply_rs, "64", 32, "%32, %33, %34, %35", "%36", "1")
WEIR_MULTIPLY_RS(multiply_rs, "128", 64, "%64, %65, %66, %67", "%68", "1")
WEIR_MULTIPLY_RS(multiply_rs, "256", 128, "%128, %129, %130, %131", "%132", "1")
WEIR_MULTIPLY_RS(multiply_rows, "32", 16, "%16, %17, %18, %19", "%20", "0")
WEIR_MULTIPLY_RS(multiply_rows, "64", 32, "%32, %33, %34, %35", "%36", "0")
WEIR_MULTIPLY_RS(multiply_rows, "128", 64, "%64, %65, %66, %67", "%68", "0")
WEIR_MULTIPLY_RS(multiply_rows, "256", 128, "%128, %129, %130, %131", "%132", "0")

#undef WEIR_MULTIPLY_RS
#undef WEIR_MULTIPLY_SS
#undef WEIR_RS
#undef WEIR_SS
#undef WEIR_LIST128
#undef WEIR_LIST112
#undef WEIR_LIST96
#undef WEIR_LIST64
#undef WEIR_LIST48
#undef WEIR_LIST32
#undef WEIR_LIST24
#undef WEIR_LIST16
#undef WEIR_LIST8
#undef WEIR_LIST4
#undef WEIR_C128
#undef WEIR_C112
#undef WEIR_C96
#undef WEIR_C64
#undef WEIR_C48
#undef WEIR_C32
#undef WEIR_C24
#undef WEIR_C16
#undef WEIR_C8
#undef WEIR_C4

}  // namespace weir::kernels::cuda
