// page_numbers.h — reading and writing the numbers of pages, and of the rows beside them, in kernels that
// have the type of the pages as a template parameter (layers.h).
//
// Tensor cores multiply bf16 with pages of bf16, and f16 with all others (but see page_products.h). Beside
// pages of fp8 or q8 the rows have either type of element, known at run time (attention_args::type).
//
// A head of numbers is operand of mma() in units of 8, or of 16 numbers of one byte, and a lane has pairs of
// neighbours. Pair i of lane q (lane % 4) begins at pair_at(i, q). With elements that is the order of mma.h.
// With bytes a lane has four neighbours of each 16: the four bytes that load_matrices() gives it.
#pragma once

#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/pages/head_size.h"

namespace weir::kernels::cuda {

// The type that tensor cores multiply.
template <page_type pages>
constexpr dtype math_type = pages == page_type::bf16 ? dtype::bf16 : dtype::f16;

// Where pair `i` of a head begins.
template <page_type pages>
__device__ __forceinline__ int pair_at(int i, int lane) {
  if constexpr (number_bytes(pages) == 1) return i / 2 * 16 + lane % 4 * 4 + i % 2 * 2;
  return i * 8 + lane % 4 * 2;
}

// Widens two neighbouring elements of a row of type `rows`.
template <page_type pages>
__device__ __forceinline__ float2 row_floats(dtype rows, const element* two) {
  if constexpr (number_bytes(pages) == 2) return floats_of<math_type<pages>>(two);
  return rows == dtype::f16 ? floats_of<dtype::f16>(two) : floats_of<dtype::bf16>(two);
}
// Rounds to two elements of a row of type `rows`.
template <page_type pages>
__device__ __forceinline__ std::uint32_t row_pair(dtype rows, float low, float high) {
  if constexpr (number_bytes(pages) == 2) return pair_of<math_type<pages>>(low, high);
  return rows == dtype::f16 ? pair_of<dtype::f16>(low, high) : pair_of<dtype::bf16>(low, high);
}

// Two neighbouring elements of a row as operand of mma().
template <page_type pages>
__device__ __forceinline__ std::uint32_t row_operand(dtype rows, const element* two) {
  if constexpr (number_bytes(pages) == 2) return *reinterpret_cast<const std::uint32_t*>(two);
  const float2 v = row_floats<pages>(rows, two);
  return pair_of<dtype::f16>(v.x, v.y);
}

// Two elements of bf16 as f16.
__device__ __forceinline__ std::uint32_t f16_of_bf16(std::uint32_t pair) {
  const float2 v = floats_of<dtype::bf16>(pair);
  return pair_of<dtype::f16>(v.x, v.y);
}

// Rounds to e4m3, to the bits of to_e4m3() (kernels/tensor.h).
__device__ __forceinline__ std::uint32_t e4m3_of(float x) {
  const std::uint32_t bits = __float_as_uint(x), sign = bits >> 24 & 0x80u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return sign | 0x7fu;
  if (rest >= 0x43e00000u) return sign | 0x7eu;  // from 448 on
  if (rest < 0x3c800000u)                        // below 2^-6
    return sign | (__float_as_uint(__fadd_rn(__uint_as_float(rest), 16384.0f)) - 0x46800000u);
  return sign | (rest + 0x7ffffu + (rest >> 20 & 1u) - (120u << 23)) >> 20;
}

// Rounds numbers `i` and `i` + 1 of a head and stores them in the row of token `token` of `to`, a head of
// `tokens` tokens (unit_at). REQUIRES: i is even
template <page_type pages, int head_dim>
__device__ __forceinline__ void put_pair(unsigned char* to, int i, int token, int tokens, float2 two) {
  const int at = i * number_bytes(pages);
  unsigned char* there = to + unit_at(at / 16, token, row_units(pages, head_dim), tokens) * 16 + at % 16;
  if constexpr (pages == page_type::fp8)
    *reinterpret_cast<std::uint16_t*>(there) =
        static_cast<std::uint16_t>(e4m3_of(two.x) | e4m3_of(two.y) << 8);
  else
    *reinterpret_cast<std::uint32_t*>(there) = pair_of<math_type<pages>>(two.x, two.y);
}

// Widens the fp8 in bytes 1 and 3 of `w` to f16, by moving their bits; the exponent's bias is 8 less in e4m3.
// The second product is infinite for the bits of NaN alone, and NaN times 0 makes the sum NaN.
__device__ __forceinline__ std::uint32_t f16_of_odd_bytes(std::uint32_t w) {
  const std::uint32_t bits = (w & 0x80008000) | (w >> 1 & 0x3f803f80);
  const __half2 small = *reinterpret_cast<const __half2*>(&bits);
  const __half2 large = __hmul2(small, __float2half2_rn(36864.0f));
  const __half2 v = __hfma2(large, __float2half2_rn(0.0f), __hmul2(small, __float2half2_rn(256.0f)));
  return *reinterpret_cast<const std::uint32_t*>(&v);
}

// Four fp8 as f16: bytes 0 and 1, and bytes 2 and 3. Of keys that load_matrices() read, they are the operands
// of mma() for the lane's first pair of each 16 numbers, and for its second.
struct wide_pairs {
  std::uint32_t low, high;
};
__device__ __forceinline__ wide_pairs widen_keys(std::uint32_t four) {
#if __CUDA_ARCH__ >= 890
  wide_pairs w;
  asm("{ .reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "cvt.rn.f16x2.e4m3x2 %1, high; }"
      : "=r"(w.low), "=r"(w.high)
      : "r"(four));
  return w;
#else
  return {f16_of_odd_bytes(__byte_perm(four, 0, 0x1404)), f16_of_odd_bytes(__byte_perm(four, 0, 0x3424))};
#endif
}
// The same for values that load_matrices_transposed() read: a register has two tokens of two neighbouring
// columns. `low` is the operand of the even columns of 16, `high` that of the odd ones. Column i of the
// product is then column 2 * i, or 2 * i + 1.
__device__ __forceinline__ wide_pairs widen_values(std::uint32_t four) {
  return widen_keys(__byte_perm(four, 0, 0x3120));
}

// The same two for codes of q8, not multiplied by their scale: exact.
__device__ __forceinline__ std::uint32_t f16_of_codes(std::uint32_t raised, unsigned which) {
  // A code, raised by 128, in the last eight bits of 1024.
  const std::uint32_t bits = __byte_perm(raised, 0x64646464, which);
  const __half2 v = __hsub2(*reinterpret_cast<const __half2*>(&bits), __float2half2_rn(1152.0f));
  return *reinterpret_cast<const std::uint32_t*>(&v);
}
__device__ __forceinline__ wide_pairs widen_code_keys(std::uint32_t four) {
  const std::uint32_t raised = four ^ 0x80808080;
  return {f16_of_codes(raised, 0x4140), f16_of_codes(raised, 0x4342)};
}
__device__ __forceinline__ wide_pairs widen_code_values(std::uint32_t four) {
  const std::uint32_t raised = four ^ 0x80808080;
  return {f16_of_codes(raised, 0x4240), f16_of_codes(raised, 0x4341)};
}

// The product of two pairs of f16.
__device__ __forceinline__ std::uint32_t multiply_pairs(std::uint32_t a, std::uint32_t b) {
  const __half2 v = __hmul2(*reinterpret_cast<const __half2*>(&a), *reinterpret_cast<const __half2*>(&b));
  return *reinterpret_cast<const std::uint32_t*>(&v);
}

// Pair `i` of the head lane / 4 of a tile, or where `upper` is 1 of the head lane / 4 + 8, out of the sums of
// values that mma() left.
template <page_type pages, int units>
__device__ __forceinline__ float2 pair_of_sums(const float (&sums)[units][4], int i, int upper) {
  if constexpr (number_bytes(pages) == 1)
    return make_float2(sums[i / 2 * 2][2 * upper + i % 2], sums[i / 2 * 2 + 1][2 * upper + i % 2]);
  return make_float2(sums[i][2 * upper], sums[i][2 * upper + 1]);
}

// Calls f with `t` as a std::integral_constant.
template <class F>
auto with_page_type(page_type t, const F& f) {
  switch (t) {
    case page_type::f16:
      return f(std::integral_constant<page_type, page_type::f16>{});
    case page_type::fp8:
      return f(std::integral_constant<page_type, page_type::fp8>{});
    case page_type::q8:
      return f(std::integral_constant<page_type, page_type::q8>{});
    default:
      return f(std::integral_constant<page_type, page_type::bf16>{});
  }
}
// Calls f with the type of the pages and the size of a head. REQUIRES: has_pages() of them
template <class F>
auto with_heads(const head_shape& h, const F& f) {
  return with_page_type(h.pages, [&](auto pages) {
    return with_head_size(h.head_dim, [&](auto size) {
      constexpr int head_dim = has_pages(pages, size) ? int{size} : 128;
      return f(pages, std::integral_constant<int, head_dim>{});
    });
  });
}

}  // namespace weir::kernels::cuda
