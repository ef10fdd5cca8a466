// pointwise.h — loops over the elements of one row.
#pragma once

#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

template <dtype type>
void widen_typed(const void* from, float* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) store_as(to + i, load_vec<type>(from, i));
  if (i == count) return;
  const vec rest = load_part<type>(from, i, count - i);
  std::memcpy(to + i, &rest, (count - i) * sizeof(float));
}

void widen(const void* from, dtype type, float* to, std::size_t count) {
  switch (type) {
    case dtype::f32:
      return static_cast<void>(std::memcpy(to, from, count * sizeof(float)));
    case dtype::bf16:
      return widen_typed<dtype::bf16>(from, to, count);
    case dtype::f16:
      return widen_typed<dtype::f16>(from, to, count);
    default:
      return;  // a quantised type; see dequantise()
  }
}

// Calls f for each whole vector, then once for the rest padded with zeros. f gets a function that loads from
// a pointer at the present index; what f returns is stored at that index of `out`.
template <class F>
WEIR_INLINE void map(float* out, std::size_t count, const F& f) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    store_as(out + i, f([&](const float* p) __attribute__((always_inline)) { return load_f32(p + i); }));
  if (i == count) return;
  const vec rest = f([&](const float* p)
                         __attribute__((always_inline)) { return load_part<dtype::f32>(p, i, count - i); });
  std::memcpy(out + i, &rest, (count - i) * sizeof(float));
}

void rms_norm_row(const float* x, const float* weight, float* out, std::size_t width, float eps) {
  constexpr std::size_t chains = 4;  // so that no addition waits for the one before it
  vec sums[chains] = {};
  std::size_t i = 0;
  for (; i + chains * lanes <= width; i += chains * lanes)
    WEIR_UNROLL
    for (std::size_t c = 0; c < chains; ++c) {
      const vec part = load_f32(x + i + c * lanes);
      sums[c] += part * part;
    }
  for (; i + lanes <= width; i += lanes) sums[0] += load_f32(x + i) * load_f32(x + i);
  if (i < width) {
    const vec rest = load_part<dtype::f32>(x, i, width - i);
    sums[1] += rest * rest;
  }
  const vec squares = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  const float scale = 1.0f / __builtin_sqrtf(sum_of(squares) / static_cast<float>(width) + eps);
  map(
      out, width, [&](const auto& at) __attribute__((always_inline)) { return at(x) * scale * at(weight); });
}

void rotate(float* x, const float* cos, const float* sin, std::size_t half) {
  std::size_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const vec a = load_f32(x + i), b = load_f32(x + half + i), c = load_f32(cos + i), s = load_f32(sin + i);
    store_as(x + i, a * c - b * s);
    store_as(x + half + i, b * c + a * s);
  }
  for (; i < half; ++i) {
    const float a = x[i], b = x[half + i];
    x[i] = a * cos[i] - b * sin[i];
    x[half + i] = b * cos[i] + a * sin[i];
  }
}

void silu_mul_row(const float* gate, const float* up, float* out, std::size_t count) {
  map(
      out, count, [&](const auto& at) __attribute__((always_inline)) {
        const vec g = at(gate);
        return g / (exp_of(-g) + 1.0f) * at(up);
      });
}

void add_row(float* x, const float* y, std::size_t count) {
  map(
      x, count, [&](const auto& at) __attribute__((always_inline)) { return at(x) + at(y); });
}

}  // namespace
}  // namespace weir::kernels
