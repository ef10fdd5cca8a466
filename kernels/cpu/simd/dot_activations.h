// dot_activations.h — rows of activations as signed codes of 8 bits, for the products of dots.h.
//
// Each row is rounded by itself. 32 inputs share a scale, which is their largest magnitude / 127. A code is
// input * (127 / largest), rounded to the nearest, ties to even. Scale and codes are zero where the largest
// magnitude is below 2^-120. The scale is NaN where an input is not finite, and so is every output of the
// row.
//
// The layout of prepared activations is [k / 32][8 + 3][rows]: words of codes in the order in which the
// weights come, the scale, and the sums of the first and the last 16 codes, which are f32.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/cpu/simd/dot_form.h"

namespace weir::kernels {
namespace {

struct rounded_group {
  alignas(64) std::int32_t codes[dot_group];
  float scale;
};

// Rounds 32 inputs.
WEIR_INLINE void round_group(const float* x, rounded_group& to) {
  ivec most{};  // magnitudes of floats are in the order of their bits, and what is not finite is above all
  for (std::size_t i = 0; i < dot_group; i += lanes) {
    const ivec size = load_as<ivec>(x + i) & 0x7fffffff;
    most = size > most ? size : most;
  }
  const float largest = fold_lanes(reinterpret_cast<vec>(most), [](vec a, vec b) {
    const auto left = reinterpret_cast<ivec>(a), right = reinterpret_cast<ivec>(b);
    return reinterpret_cast<vec>(left > right ? left : right);
  });
  const bool finite = std::isfinite(largest), zero = largest < 0x1p-120f;
  to.scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0 : largest / 127;
  if (!finite || zero) {
    std::memset(to.codes, 0, sizeof to.codes);
    return;
  }
  // A number of at most 2^22 in size that is added to 1.5 * 2^23 is rounded to the lowest bits of the sum.
  constexpr float large = 0x1.8p23f;
  const vec inverse = broadcast(127 / largest);
  for (std::size_t i = 0; i < dot_group; i += lanes) {
    const vec sum = rounded(load_f32(x + i) * inverse) + broadcast(large);
    store_as(to.codes + i, reinterpret_cast<ivec>(sum) - std::bit_cast<std::int32_t>(large));
  }
}

// The codes as bytes in the order of the words, and the sums of the first and of the last 16.
struct packed_codes {
  alignas(32) std::uint32_t words[dot_words];
  std::int32_t sums[2];
};

template <dot_kind kind, std::size_t... i>
WEIR_INLINE void pack_codes(const std::int32_t* codes, packed_codes& to, std::index_sequence<i...>) {
#if defined(__AVX2__)
  const auto at = [codes](std::size_t n) { return load_as<__m256i>(codes + 8 * n); };
  const __m256i low = _mm256_packs_epi32(at(0), at(1)), high = _mm256_packs_epi32(at(2), at(3));
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), in_order);
  const __m128i order = _mm_setr_epi8(static_cast<char>(place_in_words(kind, i / 4, i % 4))...);
  store_as(to.words, _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order)));
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  const __m256i eights = _mm256_hadd_epi32(fours, fours), all = _mm256_hadd_epi32(eights, eights);
  to.sums[0] = _mm256_extract_epi32(all, 0);
  to.sums[1] = _mm256_extract_epi32(all, 4);
#else
  for (std::size_t half = 0; half < 2; ++half) {
    const std::int32_t* from = codes + 16 * half;
    const std::int8_t bytes[16] = {static_cast<std::int8_t>(from[place_in_words(kind, i / 4, i % 4)])...};
    std::memcpy(to.words + 4 * half, bytes, sizeof bytes);
    to.sums[half] = (from[i] + ...);
  }
#endif
}

template <dot_kind kind>
void prepare_dots(const float* x, std::size_t rows, std::size_t k, std::byte* to) {
  auto* out = reinterpret_cast<std::uint32_t*>(to);
  rounded_group group;
  packed_codes packed;
  for (std::size_t at = 0; at < k; at += dot_group, out += (dot_words + 3) * rows)
    for (std::size_t r = 0; r < rows; ++r) {
      round_group(x + r * k + at, group);
      pack_codes<kind>(group.codes, packed, std::make_index_sequence<16>{});
      WEIR_UNROLL_BY(8)
      for (std::size_t i = 0; i < dot_words; ++i) out[i * rows + r] = packed.words[i];
      float* facts = reinterpret_cast<float*>(out + dot_words * rows) + r;
      facts[0] = group.scale;
      facts[rows] = static_cast<float>(packed.sums[0]);
      facts[2 * rows] = static_cast<float>(packed.sums[1]);
    }
}

std::size_t bytes_for_dots(std::size_t rows, std::size_t k) {
  return k / dot_group * (dot_words + 3) * rows * sizeof(std::uint32_t);
}

}  // namespace
}  // namespace weir::kernels
