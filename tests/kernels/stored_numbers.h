// stored_numbers.h — the numbers that a page stores, read by the description of the types (kernels/kv_type.h)
// and by no code of the backends.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/ops.h"

namespace weir::tests {

// The number of an e4m3 code, by its fields.
inline double e4m3_value(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 0x7f) == 0x7f) return NAN;
  const double size = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return bits & 0x80 ? -size : size;
}

// The product of the normalised Hadamard matrix of n rows with `x`, [n], by the matrix's entries.
inline std::vector<double> turned(const std::vector<double>& x) {
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) out[i] += std::popcount(i & j) % 2 ? -x[j] : x[j];
    out[i] /= std::sqrt(static_cast<double>(x.size()));
  }
  return out;
}

// Token `token` of a head's part of a page, before anything is turned back: [head_dim].
inline std::vector<double> raw_numbers(const std::byte* head, const kernels::kv_pages& kv,
                                       std::size_t token) {
  using kernels::kv_type;
  const std::size_t group = kernels::kv_group(kv.head_dim);
  std::vector<double> out;
  for (std::size_t i = 0; i < kv.head_dim; ++i) {
    const std::size_t at = token * kv.head_dim + i;
    std::uint16_t half = 0;
    float whole = 0;
    if (kv.type == kv_type::f32) std::memcpy(&whole, head + at * 4, 4);
    if (kv.type == kv_type::bf16) {
      std::memcpy(&half, head + at * 2, 2);
      whole = std::bit_cast<float>(std::uint32_t{half} << 16);
    }
    if (kv.type == kv_type::q8) {
      const std::size_t scale = i / group * kv.page_tokens + token;
      std::memcpy(&half, head + std::size_t{kv.head_dim} * kv.page_tokens + scale * 2, 2);
      whole = static_cast<float>(static_cast<std::int8_t>(head[at])) * kernels::from_f16(half);
    }
    out.push_back(kv.type == kv_type::fp8 ? e4m3_value(static_cast<std::uint8_t>(head[at])) : double{whole});
  }
  return out;
}

// The same numbers turned back, as attention's formula uses them.
inline std::vector<double> stored_numbers(const std::byte* head, const kernels::kv_pages& kv,
                                          std::size_t token) {
  std::vector<double> out = raw_numbers(head, kv, token);
  if (kv.type != kernels::kv_type::q8) return out;
  const auto group = static_cast<std::ptrdiff_t>(kernels::kv_group(kv.head_dim));
  for (auto at = out.begin(); at != out.end(); at += group) {
    const auto back = turned({at, at + group});
    std::copy(back.begin(), back.end(), at);
  }
  return out;
}

}  // namespace weir::tests
