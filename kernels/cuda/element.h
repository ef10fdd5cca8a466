// element.h — the 16-bit numbers, bf16 or f16, of a decoder: its weights, its rows between products, its keys
// and values. Code that only moves elements need not know which of the two they are; code that computes has
// `type` as a template parameter. All sums are f32.
//
// The largest f16 is 65,504. A larger number that is rounded to f16 here becomes 65,504 and not infinity: a
// row with one number that is too small still means something, whereas an infinity becomes NaN at the next
// norm and spreads through the pages to every later row of the sequence. cuBLASLt rounds to infinity, so an
// infinity that is read counts as 65,504, too. A NaN stays a NaN.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/pages/head_shape.h"
#include "kernels/tensor.h"

namespace weir::kernels::cuda {

struct alignas(2) element {
  std::uint16_t bits;
};

// The order of a row's elements. `paired`: of each 16 columns, the pair 2 * q of neighbours is at place q of
// eight, and the pair 2 * q + 1 at place 4 + q. A kernel that has four neighbouring columns of a matrix in
// one thread multiplies such rows by wgmma, which takes a pair from each half of 16 columns (wide_blocks.cu).
enum class column_order : bool { plain, paired };

// Where column `column` of a row in that order lies.
__host__ __device__ constexpr std::uint32_t place_in(column_order order, std::uint32_t column) {
  if (order == column_order::plain) return column;
  return (column & ~15u) | (column & 2) << 2 | (column & 12) >> 1 | (column & 1);
}

// Writes four neighbouring columns of a row, two pairs, of which the first begins at `column`, a multiple
// of 4.
__device__ __forceinline__ void put_four(column_order order, element* row, std::uint32_t column,
                                         std::uint32_t first, std::uint32_t second) {
  if (order == column_order::plain) {
    *reinterpret_cast<uint2*>(row + column) = make_uint2(first, second);
    return;
  }
  element* const to = row + place_in(order, column);  // the second pair is eight columns further on
  *reinterpret_cast<std::uint32_t*>(to) = first;
  *reinterpret_cast<std::uint32_t*>(to + 8) = second;
}

// Rounds to an element.
template <dtype type>
__device__ __forceinline__ element element_of(float x) {
  if constexpr (type == dtype::bf16) return {__bfloat16_as_ushort(__float2bfloat16(x))};
  element e;
  asm("cvt.rn.satfinite.f16.f32 %0, %1;" : "=h"(e.bits) : "f"(x));
  return e;
}

// Rounds to two elements that lie side by side; `low`, the first one in memory, is in the low bits.
template <dtype type>
__device__ __forceinline__ std::uint32_t pair_of(float low, float high) {
  std::uint32_t pair;
  if constexpr (type == dtype::bf16) {
    const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
    pair = *reinterpret_cast<const std::uint32_t*>(&v);
  } else {
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
}

// Widens two elements, the one in the low bits to x.
template <dtype type>
__device__ __forceinline__ float2 floats_of(std::uint32_t pair) {
  if constexpr (type == dtype::bf16)
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
  const __half2 most = __half2half2(__ushort_as_half(0x7bff)), v = *reinterpret_cast<const __half2*>(&pair);
  return __half22float2(__hmax2_nan(__hmin2_nan(v, most), __hneg2(most)));
}
// Widens two[0] and two[1]. REQUIRES: `two` is aligned to 4 bytes
template <dtype type>
__device__ __forceinline__ float2 floats_of(const element* two) {
  return floats_of<type>(*reinterpret_cast<const std::uint32_t*>(two));
}

}  // namespace weir::kernels::cuda
