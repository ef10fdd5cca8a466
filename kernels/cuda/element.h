// element.h — what a decoder's weights, its rows between products, and its keys and values are made of: 16
// bits, bf16 or f16. Who moves them need not know which; who computes has `type` as a parameter. All sums are
// f32.
//
// f16 ends at 65,504. What is rounded to it here stops there and does not become infinite: a row with one
// number too small is still that row, one with an infinity is NaN after the next norm, and every later row of
// its sequence through the pages. cuBLASLt rounds to infinity, so an infinity is read as the largest number.
// A NaN stays one.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/tensor.h"

namespace weir::kernels::cuda {

struct alignas(2) element {
  std::uint16_t bits;
};

constexpr bool is_element(dtype type) { return type == dtype::bf16 || type == dtype::f16; }

template <dtype type>
__device__ __forceinline__ element element_of(float x) {
  if constexpr (type == dtype::bf16) return {__bfloat16_as_ushort(__float2bfloat16(x))};
  element e;
  asm("cvt.rn.satfinite.f16.f32 %0, %1;" : "=h"(e.bits) : "f"(x));
  return e;
}

// Two that lie side by side, the first one in the low bits.
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

template <dtype type>
__device__ __forceinline__ float2 floats_of(std::uint32_t pair) {
  if constexpr (type == dtype::bf16)
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
  const __half2 most = __half2half2(__ushort_as_half(0x7bff)), v = *reinterpret_cast<const __half2*>(&pair);
  return __half22float2(__hmax2_nan(__hmin2_nan(v, most), __hneg2(most)));
}
template <dtype type>
__device__ __forceinline__ float2 floats_of(const element* two) {
  return floats_of<type>(*reinterpret_cast<const std::uint32_t*>(two));
}

}  // namespace weir::kernels::cuda
