// random_weights.h — random weights, for models without trained ones: the same numbers on every backend and
// in every type.
#pragma once

#include <cstdint>

#include "kernels/tensor.h"

#ifdef __CUDACC__
#define WEIR_ON_DEVICE __host__ __device__
#else
#define WEIR_ON_DEVICE
#endif

namespace weir::kernels {

// The finaliser of splitmix64: neighbouring inputs give unrelated bits.
WEIR_ON_DEVICE constexpr std::uint64_t mix_bits(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The bf16 at `index`: 16 random bits become a sign, one of two exponents and a mantissa, magnitudes from
// 1/64 to 1/16, none of them zero.
WEIR_ON_DEVICE constexpr std::uint16_t random_weight(std::uint64_t seed, std::uint64_t index) noexcept {
  const std::uint64_t four = mix_bits(seed + index / 4 * 4 * 0x9e3779b97f4a7c15u);
  const std::uint64_t bits = four >> (16 * (index % 4));
  return static_cast<std::uint16_t>((bits & 0x8000u) | (0x3c80u + (bits & 0xffu)));
}

// The same number as f16, exactly: another bias of the exponent, three more bits of mantissa.
WEIR_ON_DEVICE constexpr std::uint16_t random_weight_f16(std::uint64_t seed, std::uint64_t index) noexcept {
  const std::uint16_t value = random_weight(seed, index);
  return static_cast<std::uint16_t>((value & 0x8000u) | ((value & 0x7fffu) - ((127u - 15u) << 7)) << 3);
}

// Fills memory of the host with `elements` weights; with `norm` they are around 1. REQUIRES: norms are f32
inline void fill_random_weights(void* to, dtype type, std::uint64_t elements, bool norm,
                                std::uint64_t seed) noexcept {
  for (std::uint64_t i = 0; i < elements; ++i) {
    if (type == dtype::bf16)
      static_cast<std::uint16_t*>(to)[i] = random_weight(seed, i);
    else if (type == dtype::f16)
      static_cast<std::uint16_t*>(to)[i] = random_weight_f16(seed, i);
    else
      static_cast<float*>(to)[i] = from_bf16(random_weight(seed, i)) + (norm ? 1.0f : 0.0f);
  }
}

}  // namespace weir::kernels
