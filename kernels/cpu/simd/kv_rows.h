// kv_rows.h — keys and values as they are stored (kernels/kv_type.h): how a vector of stored numbers is
// widened, and how a row is rounded and stored. The stored bits are those that the reference stores
// (reference/kv_values.h), and widening is exact.
#pragma once

#include "kernels/cpu/simd/codes.h"
#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

// Loads e4m3 numbers as f16, divided by 256; NaN stays NaN. The exponents of the two types differ in their
// bias alone. An f32 would serve worse: the bits of a small e4m3 would be a subnormal f32 until its bias is
// corrected, and a subnormal costs the processor over a hundred cycles.
WEIR_INLINE hvec load_e4m3_as_f16(const std::byte* from) {
  const hvec wide = load_byte_halves(from), size = wide & 0x7f;
  return (wide & 0x80) << 8 | size << 7 | reinterpret_cast<hvec>(size == 0x7f);
}

// Loads as many stored numbers as a vector has lanes. For q8 these are the codes, not yet multiplied by their
// scale.
template <kv_type type>
WEIR_INLINE vec load_stored(const std::byte* from) {
  if constexpr (type == kv_type::f32) return load_as<vec>(from);
  if constexpr (type == kv_type::bf16) return load_bf16(reinterpret_cast<const std::uint16_t*>(from));
  if constexpr (type == kv_type::q8) return load_bytes(from);
  if constexpr (type == kv_type::fp8) return from_f16_bits(load_e4m3_as_f16(from)) * broadcast(256.0f);
}

// Calls f.operator()<type>().
template <class F>
WEIR_INLINE void with_kv_type(kv_type type, const F& f) {
  switch (type) {
    case kv_type::f32:
      return f.template operator()<kv_type::f32>();
    case kv_type::bf16:
      return f.template operator()<kv_type::bf16>();
    case kv_type::fp8:
      return f.template operator()<kv_type::fp8>();
    case kv_type::q8:
      return f.template operator()<kv_type::q8>();
  }
}

// The scales of a head's page, which lie behind its codes.
WEIR_INLINE const std::uint16_t* scales_of(const std::byte* head, std::size_t width, std::size_t tokens) {
  return reinterpret_cast<const std::uint16_t*>(head + width * tokens);
}

// Widens all scales of a head's page: to[group, token].
void widen_scales(const std::byte* head, std::size_t width, std::size_t tokens, float* to) {
  const std::size_t count = width / kv_group(static_cast<std::uint32_t>(width)) * tokens;
  const std::uint16_t* from = scales_of(head, width, tokens);
  for (std::size_t i = 0; i < count; i += lanes) store_as(to + i, load_f16(from + i));
}

// Widens tokens [first, last) of a head's page: to[token, i]. `scales`: from widen_scales(); only for q8.
template <kv_type type>
void widen_rows(const std::byte* head, std::size_t width, std::size_t tokens, std::size_t first,
                std::size_t last, const float* scales, float* to) {
  constexpr std::size_t size = facts(type).bytes;
  const std::size_t group = type == kv_type::q8 ? kv_group(static_cast<std::uint32_t>(width)) : width;
  for (std::size_t p = first; p < last; ++p)
    for (std::size_t g = 0; g < width; g += group) {
      const vec scale = broadcast(type == kv_type::q8 ? scales[g / group * tokens + p] : 1.0f);
      for (std::size_t i = 0; i < group; i += lanes) {
        const std::size_t count = group - i < lanes ? group - i : lanes, at = p * width + g + i;
        alignas(64) std::byte padded[4 * lanes] = {};
        if (count < lanes) std::memcpy(padded, head + at * size, count * size);
        const vec x = load_stored<type>(count < lanes ? padded : head + at * size);
        const vec wide = type == kv_type::q8 ? x * scale : x;
        std::memcpy(to + at, &wide, count * sizeof(float));
      }
    }
}

// Multiplies by the Hadamard matrix of `count` rows, as the reference's turn_group.
template <class T>
WEIR_INLINE void turn(T* x, std::size_t count) {
  for (std::size_t half = 1; half < count; half *= 2)
    for (std::size_t i = 0; i < count; i += 2 * half)
      for (std::size_t j = i; j < i + half; ++j) {
        const T a = x[j], b = x[j + half];
        x[j] = a + b;
        x[j + half] = a - b;
      }
  const T share = static_cast<T>(1 / __builtin_sqrt(static_cast<double>(count)));
  for (std::size_t i = 0; i < count; ++i) x[i] *= share;
}

// Turns every group of a row. Not inlined, so that the bits of the result do not depend on the caller.
__attribute__((noinline)) void turn_row(float* x, std::size_t width) {
  const std::size_t group = kv_group(static_cast<std::uint32_t>(width));
  for (std::size_t i = 0; i < width; i += group)
    group == most_kv_group ? turn(x + i, most_kv_group) : turn(x + i, group);
}

// Rounds to bf16, in the low half of each lane.
WEIR_INLINE uvec bf16_bits(vec x) {
  const auto bits = reinterpret_cast<uvec>(x);
  const uvec rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, nan = bits >> 16 | 0x40u;
  return reinterpret_cast<ivec>(bits & 0x7fffffffu) > 0x7f800000 ? nan : rounded;
}

// Rounds to e4m3, in the low byte of each lane, as to_e4m3.
WEIR_INLINE uvec e4m3_bits(vec x) {
  const auto bits = reinterpret_cast<uvec>(x);
  const uvec rest = bits & 0x7fffffffu;
  const auto size = reinterpret_cast<ivec>(rest);
  const uvec small = reinterpret_cast<uvec>(reinterpret_cast<vec>(rest) + 0x1p14f) - 0x46800000u;
  uvec to = (rest + 0x7ffffu + ((rest >> 20) & 1u) - (120u << 23)) >> 20;
  to = size < 0x3c800000 ? small : to;
  to = size >= 0x43e00000 ? uvec{} + 0x7eu : to;
  to = size > 0x7f800000 ? uvec{} + 0x7fu : to;
  return (bits >> 24 & 0x80u) | to;
}

typedef std::uint8_t byte_vec __attribute__((vector_size(lanes)));

// Rounds and stores `count` <= lanes numbers.
template <kv_type type>
WEIR_INLINE void store_stored(std::byte* to, vec x, std::size_t count) {
  if constexpr (type == kv_type::bf16) {
    const hvec bits = __builtin_convertvector(bf16_bits(x), hvec);
    std::memcpy(to, &bits, count * sizeof(std::uint16_t));
  } else {
    const byte_vec bits = __builtin_convertvector(e4m3_bits(x), byte_vec);
    std::memcpy(to, &bits, count);
  }
}

template <kv_type type>
void store_numbers(const float* x, std::size_t width, std::byte* to) {
  constexpr std::size_t size = facts(type).bytes;
  std::size_t i = 0;
  for (; i + lanes <= width; i += lanes) store_stored<type>(to + i * size, load_f32(x + i), lanes);
  if (i < width) store_stored<type>(to + i * size, load_part<dtype::f32>(x, i, width - i), width - i);
}

// Stores a group's codes, and returns its scale as f16. Flattened: what it calls must be inlined, since the
// linker keeps one copy of a function for all instruction sets.
__attribute__((flatten)) std::uint16_t store_codes(const float* x, std::size_t count, std::byte* to) {
  double turned[most_kv_group] = {};
  for (std::size_t i = 0; i < count; ++i) turned[i] = x[i];
  count == most_kv_group ? turn(turned, most_kv_group) : turn(turned, count);
  alignas(64) float rounded[most_kv_group];
  for (std::size_t i = 0; i < most_kv_group; ++i) rounded[i] = static_cast<float>(turned[i]);
  std::int32_t largest = 0;  // a larger magnitude has larger bits, and a NaN the largest
  for (std::size_t i = 0; i < most_kv_group; ++i) {
    std::int32_t bits;
    std::memcpy(&bits, rounded + i, sizeof bits);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  float most;
  std::memcpy(&most, &largest, sizeof most);
  const std::uint16_t stored = largest < 0x7f800000 ? to_f16(most / 127) : 0x7e00;
  const float scale = from_f16(stored);
  alignas(64) std::int8_t codes[most_kv_group] = {};
  if (scale > 0)
    for (std::size_t i = 0; i < most_kv_group; i += lanes) {
      const vec shift = all(0x1.8p23f);  // adding it rounds to a whole number
      const vec whole = load_f32(rounded + i) / broadcast(scale) + shift - shift;
      const vec code = smaller(all(127.0f), larger(all(-127.0f), whole));
      store_as(codes + i, __builtin_convertvector(__builtin_convertvector(code, ivec), byte_vec));
    }
  std::memcpy(to, codes, count);
  return stored;
}

void store_q8(const kv_pages& kv, const float* x, std::byte* head, std::size_t token) {
  const std::size_t width = kv.head_dim, tokens = kv.page_tokens, group = kv_group(kv.head_dim);
  std::byte* scales = head + width * tokens;
  for (std::size_t i = 0; i < width; i += group) {
    const std::uint16_t scale = store_codes(x + i, group, head + token * width + i);
    std::memcpy(scales + (i / group * tokens + token) * sizeof scale, &scale, sizeof scale);
  }
}

// Rounds one token's numbers of one head, and stores them at `token` of the head's part of a page.
void store_kv_row(const kv_pages& kv, const float* x, std::byte* head, std::uint32_t token) {
  const std::size_t width = kv.head_dim;
  std::byte* row = head + token * width * facts(kv.type).bytes;
  switch (kv.type) {
    case kv_type::f32:
      std::memcpy(row, x, width * sizeof(float));
      return;
    case kv_type::bf16:
      return store_numbers<kv_type::bf16>(x, width, row);
    case kv_type::fp8:
      return store_numbers<kv_type::fp8>(x, width, row);
    case kv_type::q8:
      return store_q8(kv, x, head, token);
  }
}

}  // namespace
}  // namespace weir::kernels
