// vector.h — the vector type of the inner loops: as many floats as fit into a vector of the instruction set
// for which this file is compiled.
//
// Only simd/<instruction set>.cpp include this file, and each of them is compiled with flags of its own.
// Everything is in an unnamed namespace, and no inline function from elsewhere is called with vectors: the
// linker keeps one copy of an inline function for all, and that must never be a copy made for AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/simd.h"

namespace weir::kernels {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t lanes = 16;
#elif defined(__AVX2__)
constexpr std::size_t lanes = 8;
#else
constexpr std::size_t lanes = 4;
#endif

typedef float vec __attribute__((vector_size(4 * lanes)));
typedef std::int32_t ivec __attribute__((vector_size(4 * lanes)));
typedef std::uint32_t uvec __attribute__((vector_size(4 * lanes)));
typedef std::uint16_t hvec __attribute__((vector_size(2 * lanes)));

#define WEIR_INLINE __attribute__((always_inline)) inline
// WEIR_UNROLL unrolls a loop completely, so that arrays stay in registers. A sanitizer's checks of unrolled
// loops take the compiler five minutes for each instruction set.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_UNROLL_BY(times)
#else
#define WEIR_PRAGMA(text) _Pragma(#text)
#define WEIR_UNROLL_BY(times) WEIR_PRAGMA(GCC unroll times)
#endif
#define WEIR_UNROLL WEIR_UNROLL_BY(16)

template <class V, class T>
WEIR_INLINE V load_as(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class V, class T>
WEIR_INLINE void store_as(T* to, V v) {
  std::memcpy(to, &v, sizeof v);
}

template <std::size_t... i>
WEIR_INLINE ivec numbers(std::index_sequence<i...>) {
  return ivec{static_cast<std::int32_t>(i)...};
}
WEIR_INLINE ivec lane_numbers() { return numbers(std::make_index_sequence<lanes>{}); }

WEIR_INLINE vec all(float x) { return x - vec{}; }  // not x + 0, which makes 0 of -0
WEIR_INLINE vec load_f32(const float* from) { return load_as<vec>(from); }

WEIR_INLINE uvec load_halves(const std::uint16_t* from) {
#if defined(__AVX512F__)
  return reinterpret_cast<uvec>(_mm512_maskz_cvtepu16_epi32(0xffff, load_as<__m256i>(from)));
#elif defined(__AVX2__)
  return reinterpret_cast<uvec>(_mm256_cvtepu16_epi32(load_as<__m128i>(from)));
#else
  return __builtin_convertvector(load_as<hvec>(from), uvec);
#endif
}

WEIR_INLINE vec load_bf16(const std::uint16_t* from) {
  return reinterpret_cast<vec>(load_halves(from) << 16);
}

WEIR_INLINE vec from_f16_bits(hvec halves) {
#if defined(__AVX512F__)
  return reinterpret_cast<vec>(_mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(halves)));
#elif defined(__F16C__)
  return reinterpret_cast<vec>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(halves)));
#else
  // A multiplication rebiases the exponent, as in from_f16.
  const uvec bits = __builtin_convertvector(halves, uvec);
  const uvec rest = (bits & 0x7fffu) << 13;
  const vec scaled = reinterpret_cast<vec>(rest) * 0x1p112f;
  const uvec special = rest | 0x7f800000u;
  const uvec magnitude = rest >= 0x0f800000u ? special : reinterpret_cast<uvec>(scaled);
  const uvec whole = ((bits & 0x8000u) << 16) | magnitude;
  return reinterpret_cast<vec>(whole);
#endif
}
WEIR_INLINE vec load_f16(const std::uint16_t* from) { return from_f16_bits(load_as<hvec>(from)); }

template <dtype type>
WEIR_INLINE vec load_vec(const void* base, std::size_t index) {
  if constexpr (type == dtype::f32) return load_f32(static_cast<const float*>(base) + index);
  if constexpr (type == dtype::bf16) return load_bf16(static_cast<const std::uint16_t*>(base) + index);
  if constexpr (type == dtype::f16) return load_f16(static_cast<const std::uint16_t*>(base) + index);
}

// The first `count` < lanes elements, then zeros.
template <dtype type>
WEIR_INLINE vec load_part(const void* base, std::size_t index, std::size_t count) {
#if defined(__AVX512F__)
  if constexpr (type == dtype::f32)
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1),
                                 static_cast<const float*>(base) + index);
#endif
  alignas(64) unsigned char padded[4 * lanes] = {};
  std::memcpy(padded, static_cast<const unsigned char*>(base) + index * size_of(type), count * size_of(type));
  return load_vec<type>(padded, 0);
}

// x, rounded before anything is added to it. The compiler may fuse either product of a * b + c * d with the
// addition, and may choose differently in two copies of a loop; a product that went through here is not
// fused. (__builtin_assoc_barrier would do the same, but GCC 12 takes vectors apart to put it around each
// element.)
template <class T>
WEIR_INLINE T rounded(T x) {
#if defined(__x86_64__)
  asm("" : "+v"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}

// The larger or the smaller of each lane; `x` where one of the two is NaN.
WEIR_INLINE vec larger(vec than, vec x) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xffff, than, x);
#elif defined(__AVX__)
  return _mm256_max_ps(than, x);
#else
  return than > x ? than : x;
#endif
}
WEIR_INLINE vec smaller(vec than, vec x) {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(0xffff, than, x);
#elif defined(__AVX__)
  return _mm256_min_ps(than, x);
#else
  return than < x ? than : x;
#endif
}

WEIR_INLINE bool any_above(vec x, float bound) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(x, all(bound), _CMP_GT_OQ) != 0;
#elif defined(__AVX__)
  return _mm256_movemask_ps(_mm256_cmp_ps(x, all(bound), _CMP_GT_OQ)) != 0;
#elif defined(__SSE__)
  return _mm_movemask_ps(_mm_cmpgt_ps(x, all(bound))) != 0;
#else
  bool any = false;
  for (std::size_t i = 0; i < lanes; ++i) any |= x[i] > bound;
  return any;
#endif
}

// a * b + c, rounded once where the instruction set can.
WEIR_INLINE vec multiply_add(vec a, vec b, vec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return c + a * b;
#endif
}

WEIR_INLINE vec broadcast(float x) {
#if defined(__AVX512F__)
  return _mm512_set1_ps(x);
#elif defined(__AVX2__)
  return _mm256_set1_ps(x);
#else
  return vec{x, x, x, x};
#endif
}

// Bit i is set where lane i is `least` or more.
WEIR_INLINE unsigned reaching(vec x, float least) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(x, all(least), _CMP_GE_OQ);
#elif defined(__AVX__)
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, all(least), _CMP_GE_OQ)));
#elif defined(__SSE__)
  return static_cast<unsigned>(_mm_movemask_ps(_mm_cmpge_ps(x, all(least))));
#else
  unsigned bits = 0;
  for (std::size_t i = 0; i < lanes; ++i) bits |= x[i] >= least ? 1u << i : 0u;
  return bits;
#endif
}

// The lanes rotated: lane i gets v[(i + by) % lanes].
template <std::size_t by, std::size_t... i>
WEIR_INLINE vec turned(vec v, std::index_sequence<i...>) {
  return __builtin_shufflevector(v, v, static_cast<int>((i + by) % lanes)...);
}

// Folds the lanes in halves with f, always in the same order.
template <std::size_t width = lanes / 2, class F>
WEIR_INLINE float fold_lanes(vec v, const F& f) {
  v = f(v, turned<width>(v, std::make_index_sequence<lanes>{}));
  if constexpr (width > 1)
    return fold_lanes<width / 2>(v, f);
  else
    return v[0];
}

WEIR_INLINE float sum_of(vec v) {
  return fold_lanes(v, [](vec a, vec b) __attribute__((always_inline)) { return a + b; });
}

WEIR_INLINE float largest_of(vec v) {
  return fold_lanes(v, [](vec a, vec b) __attribute__((always_inline)) { return larger(a, b); });
}

// e^x within 2 ulp for x in [-87, most]. A smaller x counts as -87, and NaN stays NaN. The result is 2^n
// times a polynomial of the rest (Cephes' expf), where n is x / ln 2 rounded to a whole number. The addition
// of `shift` leaves n in the low bits, from which it goes into the exponent.
// REQUIRES: x <= most, or NaN
template <int most>
WEIR_INLINE vec exp_below(vec x) {
  static_assert(most <= 88);
  x = larger(all(-87.0f), x);
  const vec shift = all(0x1.8p23f);  // adding it rounds to a whole number
  const vec shifted = x * 1.44269504f + shift;
  const vec n = shifted - shift;
  const vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  vec p = all(1.9875691e-4f);
  p = p * r + 1.3981999e-3f;
  p = p * r + 8.3334519e-3f;
  p = p * r + 4.1665796e-2f;
  p = p * r + 1.6666665e-1f;
  p = p * r + 5.0000001e-1f;
  p = p * (r * r) + r + 1.0f;
  const uvec scaled = reinterpret_cast<uvec>(p) + (reinterpret_cast<uvec>(shifted) << 23);
  return reinterpret_cast<vec>(scaled);
}

// The same for any x; an x above 88 counts as 88.
WEIR_INLINE vec exp_of(vec x) { return exp_below<88>(smaller(all(88.0f), x)); }

}  // namespace
}  // namespace weir::kernels
