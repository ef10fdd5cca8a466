// block_rounding.h — the weights of a cell (block_layout.h) as bf16 in registers, for products of many rows:
// each weight is rounded once.
//
// A code becomes an f32 in one step: a byte permutation puts it into the mantissa of a power of two. What the
// number is then too large by is subtracted by the operation that multiplies the scale, where that is as
// exact.
#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda/products/block_codes.h"

namespace weir::kernels::cuda {

// How the codes of a type become f32.
template <dtype type>
struct rounding_form {
  static constexpr block_format format = format_of(type);
  static constexpr bool nibbles = format.code_bits == 4;
  // Signed bytes of 8 bits become the code and 2^15 + 128, other codes become the code and 2^7.
  static constexpr bool whole_bytes = is_table(type) || type == dtype::q8_0 || type == dtype::int8;
  static constexpr bool centred = !nibbles && !whole_bytes && format.offset != 0;  // 64 is added, too
  static constexpr float excess = whole_bytes ? 32768 + 128
                                  : nibbles   ? 128 - format.values[0]
                                              : 128 + (centred ? 64 : 0);
  // Whether excess * scale is subtracted from the minimum: it is then exact, or has an error of 2^-16 of the
  // scale at most. Otherwise the excess is subtracted from the code.
  static constexpr bool folded =
      !format.wide_scales && !format.zeros && !(whole_bytes && format.scaled_groups);
};

// The codes of columns 32 * j on as bytes; code (h, e) of code_at() is the byte `at` of word `word`
// (place_of).
template <dtype type>
__device__ __forceinline__ void bytes_of_codes(const cell_row<type>& row, int j, std::uint32_t (&words)[2]) {
  using form = rounding_form<type>;
  const std::uint32_t w = word_of(row.codes[0], j);
  if constexpr (is_table(type)) {
    const std::uint32_t high = 0x32103210 | (w & 0x88888888) >> 1;
    words[0] = look_up<type>(w, high) ^ 0x80808080;
    words[1] = look_up<type>(w >> 16, high >> 16) ^ 0x80808080;
  } else if constexpr (form::nibbles) {
    words[0] = w & 0x0f0f0f0f;
    words[1] = w >> 4 & 0x0f0f0f0f;
  } else {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const std::uint32_t c = word_of(row.codes[j / 2], j % 2 * 2 + h);
      words[h] = form::whole_bytes ? c ^ 0x80808080 : form::centred ? (c & 0x7f7f7f7f) ^ 0x40404040 : c;
    }
  }
}
struct byte_place {
  std::uint32_t word, at;
};
template <dtype type>
__device__ constexpr byte_place place_of(int h, int e) {
  const std::uint32_t nibble = code_at(h, e);
  if (is_table(type)) return {nibble / 4, nibble % 4};
  if (rounding_form<type>::nibbles) return {nibble % 2, nibble / 2};
  return {static_cast<std::uint32_t>(h), byte_at(e)};
}

// The four codes of e4m3 in `w`, in the order of byte_at().
__device__ __forceinline__ void codes_of_e4m3(std::uint32_t w, float (&codes)[4]) {
  float2 v[2];
#if __CUDA_ARCH__ >= 890
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    __half2 two;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;"
        : "=r"(*reinterpret_cast<std::uint32_t*>(&two))
        : "h"(static_cast<std::uint16_t>(w >> 16 * i)));
    v[i] = __half22float2(two);
  }
  codes[0] = v[0].x;
  codes[1] = v[1].x;
  codes[2] = v[0].y;
  codes[3] = v[1].y;
#else
  v[0] = floats_of<dtype::bf16>(pair_of_e4m3(w << 8));
  v[1] = floats_of<dtype::bf16>(pair_of_e4m3(w));
  codes[0] = v[0].x;
  codes[1] = v[0].y;
  codes[2] = v[1].x;
  codes[3] = v[1].y;
#endif
}

// The weights of columns 32 * j on, in the order of cell_row::expand(), rounded to bf16.
template <dtype type>
__device__ __forceinline__ void round_cell(const cell_row<type>& row, int j, std::uint32_t (&pairs)[4]) {
  using form = rounding_form<type>;
  constexpr bool e4m3 = form::format.e4m3;
  std::uint32_t words[2];
  if constexpr (!e4m3) bytes_of_codes<type>(row, j, words);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float s = row.scale(j, h);
    float m = 0;
    if constexpr (form::format.minima) m = row.minimum(j, h);
    if constexpr (form::folded && !e4m3) m -= form::excess * s;
    float codes[4];
    if constexpr (e4m3) {
      codes_of_e4m3(word_of(row.codes[j / 2], j % 2 * 2 + h), codes);
    } else {
      const float less = form::excess + (form::format.zeros ? row.zero(j) : 0.0f);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const byte_place p = place_of<type>(h, e);
        codes[e] =
            __uint_as_float(form::whole_bytes ? __byte_perm(words[p.word], 0x47000000, 0x7604 | p.at << 4)
                                              : __byte_perm(words[p.word], 0x43000000, 0x7044 | p.at << 8));
        if constexpr (!form::folded) codes[e] -= less;
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
      pairs[2 * h + i] = pair_of<dtype::bf16>(fmaf(codes[2 * i], s, m), fmaf(codes[2 * i + 1], s, m));
  }
}

}  // namespace weir::kernels::cuda
