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

// The sum over a row of f of each vector, in several chains, so that no addition waits for the one before it.
// `masked`: f makes something else than zeros of the zeros that fill up the last vector.
template <bool masked, class F>
WEIR_INLINE float sum_over(const float* x, std::size_t width, const F& f) {
  constexpr std::size_t chains = 4;
  vec sums[chains] = {};
  std::size_t i = 0;
  for (; i + chains * lanes <= width; i += chains * lanes)
    WEIR_UNROLL
  for (std::size_t c = 0; c < chains; ++c) sums[c] += f(load_f32(x + i + c * lanes));
  for (; i + lanes <= width; i += lanes) sums[0] += f(load_f32(x + i));
  if (i < width) {
    vec rest = f(load_part<dtype::f32>(x, i, width - i));
    if constexpr (masked) rest = lane_numbers() < static_cast<std::int32_t>(width - i) ? rest : vec{};
    sums[1] += rest;
  }
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

WEIR_INLINE float norm_scale(float squares, std::size_t width, float eps) {
  return 1.0f / __builtin_sqrtf(squares / static_cast<float>(width) + eps);
}

WEIR_INLINE void plain_norm_row(const float* x, const float* weight, float* out, std::size_t width,
                                float eps) {
  const auto square = [](vec v) __attribute__((always_inline)) { return v * v; };
  const float scale = norm_scale(sum_over<false>(x, width, square), width, eps);
  map(
      out, width, [&](const auto& at) __attribute__((always_inline)) { return at(x) * scale * at(weight); });
}

void centred_norm_row(const float* x, const float* weight, float* out, std::size_t width, float eps) {
  const auto itself = [](vec v) __attribute__((always_inline)) { return v; };
  const float mean = sum_over<false>(x, width, itself) / static_cast<float>(width);
  const auto square = [mean](vec v) __attribute__((always_inline)) { return (v - mean) * (v - mean); };
  const float scale = norm_scale(sum_over<true>(x, width, square), width, eps);
  map(
      out, width, [&](const auto& at) __attribute__((always_inline)) {
        return (at(x) - mean) * scale * at(weight);
      });
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

WEIR_INLINE vec sigmoid_share(vec x, vec exponent) { return x / (exp_of(exponent) + 1.0f); }

// x with |x| < 0.25 by its series, where 1 - 2 / (exp(2x) + 1) would lose digits.
WEIR_INLINE vec tanh_of(vec x) {
  const vec y = x * x;
  const vec near = x + x * y * (y * (y * (y * (62.0f / 2835) - 17.0f / 315) + 2.0f / 15) - 1.0f / 3);
  const vec far = 1.0f - 2.0f / (exp_of(x + x) + 1.0f);
  return y < all(0.0625f) ? near : far;
}

WEIR_INLINE vec activated(activation kind, vec g) {
  if (kind == activation::relu2) return g <= vec{} ? vec{} : g * g;
  if (kind == activation::gelu) {  // 0.5 (1 + tanh(u)) is the sigmoid of 2u
    g = larger(all(-20.0f), g);    // which is 0 below, also at -inf
    return sigmoid_share(g, -1.5957691216f * (g + 0.044715f * g * g * g));
  }
  return g / (exp_of(-g) + 1.0f);
}

template <activation kind>
void activate_as(const float* gate, const float* up, float* out, std::size_t count) {
  if (!up)
    return map(
        out, count, [&](const auto& at) __attribute__((always_inline)) { return activated(kind, at(gate)); });
  map(
      out, count, [&](const auto& at) __attribute__((always_inline)) {
        return activated(kind, at(gate)) * at(up);
      });
}

// activation::clamped. A NaN stays one.
void clamped_row(const float* gate, const float* up, float* out, std::size_t count, float limit) {
  const vec most = all(limit), least = -most;
  map(
      out, count, [&](const auto& at) __attribute__((always_inline)) {
        const vec g = smaller(most, at(gate)), u = larger(least, smaller(most, at(up)));
        return sigmoid_share(g, -1.702f * g) * (u + 1.0f);
      });
}

void activate_row(activation kind, const float* gate, const float* up, float* out, std::size_t count,
                  float limit) {
  switch (kind) {
    case activation::silu:
      return activate_as<activation::silu>(gate, up, out, count);
    case activation::gelu:
      return activate_as<activation::gelu>(gate, up, out, count);
    case activation::relu2:
      return activate_as<activation::relu2>(gate, up, out, count);
    case activation::clamped:
      return clamped_row(gate, up, out, count, limit);
  }
}

void sigmoid_mul_row(float* x, const float* gate, std::size_t count) {
  const auto opened = [&](const auto& at) __attribute__((always_inline)) {
    return sigmoid_share(at(x), -at(gate));
  };
  map(x, count, opened);
}

void add_row(float* x, const float* y, std::size_t count, float factor) {
  if (factor == 1)
    return map(
        x, count, [&](const auto& at) __attribute__((always_inline)) { return at(x) + at(y); });
  map(
      x, count, [&](const auto& at) __attribute__((always_inline)) { return at(x) + factor * at(y); });
}

void norm_row(const float* x, const float* weight, const float* bias, float* out, std::size_t width,
              float eps, bool centred) {
  if (centred)
    centred_norm_row(x, weight, out, width, eps);
  else
    plain_norm_row(x, weight, out, width, eps);
  if (bias) add_row(out, bias, width, 1);
}

void soft_cap_row(float* x, std::size_t count, float factor, float cap) {
  if (cap == 0)
    return map(
        x, count, [&](const auto& at) __attribute__((always_inline)) { return factor * at(x); });
  map(
      x, count, [&](const auto& at) __attribute__((always_inline)) {
        return cap * tanh_of(factor * at(x) / cap);
      });
}

}  // namespace
}  // namespace weir::kernels
