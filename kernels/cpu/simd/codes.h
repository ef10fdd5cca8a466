// codes.h — the codes of quantised weights as floats in registers, one output in each lane.
#pragma once

#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

// As many floats as a vector has lanes, from signed bytes.
WEIR_INLINE vec load_bytes(const std::byte* from) {
#if defined(__AVX512F__)
  const __m512i wide = _mm512_maskz_cvtepi8_epi32(0xffff, load_as<__m128i>(from));
  return _mm512_maskz_cvtepi32_ps(0xffff, wide);
#elif defined(__AVX2__)
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
  typedef std::int8_t bytes __attribute__((vector_size(lanes)));
  return __builtin_convertvector(__builtin_convertvector(load_as<bytes>(from), ivec), vec);
#endif
}

// A byte in each lane.
WEIR_INLINE uvec load_byte_bits(const std::byte* from) {
#if defined(__AVX512F__)
  return reinterpret_cast<uvec>(_mm512_maskz_cvtepu8_epi32(0xffff, load_as<__m128i>(from)));
#elif defined(__AVX2__)
  return reinterpret_cast<uvec>(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
  typedef std::uint8_t bytes __attribute__((vector_size(lanes)));
  return __builtin_convertvector(load_as<bytes>(from), uvec);
#endif
}

// A byte in each 16-bit half.
WEIR_INLINE hvec load_byte_halves(const std::byte* from) {
#if defined(__AVX512F__)
  return reinterpret_cast<hvec>(_mm256_cvtepu8_epi16(load_as<__m128i>(from)));
#elif defined(__AVX2__)
  return reinterpret_cast<hvec>(_mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#else
  typedef std::uint8_t bytes __attribute__((vector_size(lanes)));
  return __builtin_convertvector(load_as<bytes>(from), hvec);
#endif
}

// As many e4m3 floats as a vector has lanes, exactly: moves their bits to the places that they have in an
// f32, then corrects the exponent's bias.
WEIR_INLINE vec load_e4m3(const std::byte* from) {
  const uvec wide = load_byte_bits(from);
  return reinterpret_cast<vec>((wide & 0x7f) << 20 | (wide & 0x80) << 24) * broadcast(0x1p120f);
}

// The sixteen values of codes of four bits. of() returns a value divided by `unit`, and the caller multiplies
// the scale of the group by `unit`. The unit is a power of two, so the products keep their bits. A scale
// below 1e-30 loses bits in that multiplication.
// `halves`: some values are whole numbers and a half. All values are then looked up doubled.
template <bool halves>
struct code_values {
#if defined(__AVX512F__)
  static constexpr float unit = 1;
  typedef uvec codes;
  vec all;
  explicit code_values(const float* from) : all(load_f32(from)) {}
  WEIR_INLINE codes look_up(uvec words) const { return words; }
  // The values of the codes in bits 4 * i to 4 * i + 3 of each lane.
  template <int i>
  WEIR_INLINE vec of(codes words) const {
    return _mm512_maskz_permutexvar_ps(0xffff, reinterpret_cast<__m512i>(words >> (4 * i)), all);
  }
#elif defined(__AVX2__)
  // A shuffle finds the values of a word's eight codes as bytes. A float is converted from a lane that has
  // one of these bytes at the top and zeros below it.
  static constexpr float unit = halves ? 0x1p-25f : 0x1p-24f;
  struct codes {
    __m256i even, odd;
  };
  __m256i all;
  explicit code_values(const float* from) {
    std::int8_t bytes[32];
    for (std::size_t i = 0; i < 32; ++i)
      bytes[i] = static_cast<std::int8_t>(from[i % 16] * (halves ? 2.0f : 1.0f));
    all = load_as<__m256i>(bytes);
  }
  WEIR_INLINE codes look_up(uvec words) const {
    const __m256i low = _mm256_set1_epi8(15);
    return {_mm256_shuffle_epi8(all, _mm256_and_si256(reinterpret_cast<__m256i>(words), low)),
            _mm256_shuffle_epi8(all, _mm256_and_si256(reinterpret_cast<__m256i>(words >> 4), low))};
  }
  template <int i>
  WEIR_INLINE vec of(const codes& c) const {
    const __m256i bytes = i % 2 == 0 ? c.even : c.odd;
    __m256i top;
    if constexpr (i / 2 == 0)
      top = _mm256_slli_epi32(bytes, 24);
    else if constexpr (i / 2 == 3)
      top = _mm256_and_si256(bytes, _mm256_set1_epi32(static_cast<int>(0xff000000u)));
    else
      top = _mm256_shuffle_epi8(bytes, highest<i / 2>());
    return _mm256_cvtepi32_ps(top);
  }
  // The shuffle that moves byte `n` of each lane to the lane's top, with zeros below it.
  template <int n>
  WEIR_INLINE static __m256i highest() {
    constexpr int first = 0x00808080 | n << 24, next = 4 << 24;
    return _mm256_broadcastsi128_si256(
        _mm_setr_epi32(first, first + next, first + 2 * next, first + 3 * next));
  }
#else
  static constexpr float unit = 1;
  typedef uvec codes;
  const float* table;
  explicit code_values(const float* from) : table(from) {}
  WEIR_INLINE codes look_up(uvec words) const { return words; }
  template <int i>
  WEIR_INLINE vec of(codes words) const {
    vec out;
    for (std::size_t l = 0; l < lanes; ++l) out[l] = table[words[l] >> (4 * i) & 15];
    return out;
  }
#endif
};

}  // namespace
}  // namespace weir::kernels
