// page_products.h — the two products of attention on the tensor cores of one warp, for pages of any type in
// shared memory (page_numbers.h).
//
// With q8 each group of columns is a product of its own. Queries are multiplied by codes, and the sums of a
// group are scaled in f32. A token's weight is multiplied by the scale of its values in f16, and codes by the
// product. Queries come turned, and sums of values stay turned until the end (page_turn.h).
#pragma once

#include "kernels/cuda/pages/page_numbers.h"

namespace weir::kernels::cuda {

// The largest weight of a token is two to this power. Weights and their totals are larger with q8, because a
// small weight times a small scale may be too small for f16. The product is infinite where a scale is beyond
// 4,094, which is that of values beyond 500,000.
template <page_type pages>
constexpr float weight_power = pages == page_type::q8 ? 4.0f : 0.0f;

// The scales of a token and of the next one, at shared-memory address `at`. REQUIRES: the token is even
__device__ __forceinline__ std::uint32_t two_scales(std::uint32_t at) {
  std::uint32_t bits;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(bits) : "r"(at) : "memory");
  return bits;
}

// scores[n] += the products of a tile's queries (operand A of mma) and of the keys of tokens 8 * n to 8 * n +
// 7, for n < tiles. `keys` is the shared-memory address of the first of these tokens in a head of `tokens`
// tokens (unit_at), `scales` that of its first scale, for q8.
template <page_type pages, int head_dim, int tokens, int tiles>
__device__ __forceinline__ void multiply_keys(float (&scores)[tiles][4],
                                              const std::uint32_t (&q)[head_dim / 16][4], std::uint32_t keys,
                                              std::uint32_t scales, int lane) {
  constexpr int units = row_units(pages, head_dim);
  if constexpr (number_bytes(pages) == 2) {
#pragma unroll
    for (int s = 0; s < units / 2; ++s)
#pragma unroll
      for (int n = 0; n < tiles; n += 2) {
        const int token = n * 8 + (lane >> 4) * 8 + lane % 8;
        std::uint32_t b[4];
        load_matrices(b, keys + unit_at(s * 2 + (lane >> 3) % 2, token, units, tokens) * 16);
        mma<math_type<pages>>(scores[n], q[s][0], q[s][1], q[s][2], q[s][3], b[0], b[1]);
        mma<math_type<pages>>(scores[n + 1], q[s][0], q[s][1], q[s][2], q[s][3], b[2], b[3]);
      }
  } else {
#pragma unroll
    for (int u = 0; u < units; u += 2)
#pragma unroll
      for (int n = 0; n < tiles; n += 2) {
        const int token = n * 8 + (lane >> 3) % 2 * 8 + lane % 8;
        std::uint32_t b[4];
        load_matrices(b, keys + unit_at(min(u + (lane >> 4), units - 1), token, units, tokens) * 16);
        float sums[2][4] = {};
#pragma unroll
        for (int i = 0; i < 4 && u + i / 2 < units; ++i) {
          const std::uint32_t(&a)[4] = q[u + i / 2];
          const wide_pairs w = pages == page_type::q8 ? widen_code_keys(b[i]) : widen_keys(b[i]);
          float(&to)[4] = pages == page_type::q8 ? sums[i % 2] : scores[n + i % 2];
          mma<dtype::f16>(to, a[0], a[1], a[2], a[3], w.low, w.high);
        }
        if constexpr (pages == page_type::q8) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float2 by =
                floats_of<dtype::f16>(two_scales(scales + (u / 2 * tokens + (n + i) * 8 + lane % 4 * 2) * 2));
#pragma unroll
            for (int j = 0; j < 4; ++j) scores[n + i][j] += (j % 2 ? by.y : by.x) * sums[i][j];
          }
        }
      }
  }
}

// The weights of 16 tokens for the lines of a tile: operand A of mma.
struct token_weights {
  std::uint32_t a[4];
};
// Out of what mma() left for eight tokens, and for the eight behind them.
template <page_type pages>
__device__ __forceinline__ token_weights weights_of(const float (*x)[4]) {
  constexpr dtype type = math_type<pages>;
  return {{pair_of<type>(x[0][0], x[0][1]), pair_of<type>(x[0][2], x[0][3]), pair_of<type>(x[1][0], x[1][1]),
           pair_of<type>(x[1][2], x[1][3])}};
}
// The weights times the scales of a group, of the two tokens that a lane has of the first eight, and of those
// that it has of the others.
__device__ __forceinline__ token_weights scaled(const token_weights& p, std::uint32_t low,
                                                std::uint32_t high) {
  return {{multiply_pairs(p.a[0], low), multiply_pairs(p.a[1], low), multiply_pairs(p.a[2], high),
           multiply_pairs(p.a[3], high)}};
}

// sums += the products of the weights and of the values of tokens `first` to `first` + 15 behind that at
// `values`, as in multiply_keys().
template <page_type pages, int head_dim, int tokens>
__device__ __forceinline__ void multiply_values(float (&sums)[head_dim / 8][4], const token_weights& weights,
                                                std::uint32_t values, std::uint32_t scales, int first,
                                                int lane) {
  constexpr int units = row_units(pages, head_dim);
  const int token = first + (lane >> 3) % 2 * 8 + lane % 8;
  token_weights p = weights;
#pragma unroll
  for (int u = 0; u < units; u += 2) {
    std::uint32_t b[4];
    load_matrices_transposed(b, values + unit_at(min(u + (lane >> 4), units - 1), token, units, tokens) * 16);
    if constexpr (pages == page_type::q8) {
      const std::uint32_t at = scales + (u / 2 * tokens + first + lane % 4 * 2) * 2;
      p = scaled(weights, two_scales(at), two_scales(at + 16));
    }
#pragma unroll
    for (int i = 0; i < 2 && u + i < units; ++i) {
      const std::uint32_t low = b[2 * i], high = b[2 * i + 1];
      if constexpr (number_bytes(pages) == 1) {
        const bool codes = pages == page_type::q8;
        const wide_pairs l = codes ? widen_code_values(low) : widen_values(low);
        const wide_pairs h = codes ? widen_code_values(high) : widen_values(high);
        mma<dtype::f16>(sums[2 * (u + i)], p.a[0], p.a[1], p.a[2], p.a[3], l.low, h.low);
        mma<dtype::f16>(sums[2 * (u + i) + 1], p.a[0], p.a[1], p.a[2], p.a[3], l.high, h.high);
      } else {
        mma<math_type<pages>>(sums[u + i], p.a[0], p.a[1], p.a[2], p.a[3], low, high);
      }
    }
  }
}

}  // namespace weir::kernels::cuda
