// logits.h — the loops over logits and weights (kernels/logits.h).
#pragma once

#include "kernels/cpu/simd/pointwise.h"
#include "kernels/logits.h"

namespace weir::kernels {
namespace {

// `odd` is NaN where there was a NaN or +inf: either of them times zero is NaN, and a sum keeps it.
logit_loops::peak largest_logit(const float* x, std::size_t count) {
  constexpr std::size_t chains = 4;
  vec most[chains], odd[chains] = {};
  for (vec& m : most) m = all(-__builtin_inff());
  const auto look = [&](std::size_t c, vec v) __attribute__((always_inline)) {
    most[c] = larger(v, most[c]);  // ignores a NaN
    odd[c] += larger(vec{}, v) * 0.0f;
  };
  std::size_t i = 0;
  for (; i + chains * lanes <= count; i += chains * lanes)
    WEIR_UNROLL
    for (std::size_t c = 0; c < chains; ++c) look(c, load_f32(x + i + c * lanes));
  for (; i + lanes <= count; i += lanes) look(0, load_f32(x + i));
  for (; i < count; ++i) look(0, all(x[i]));
  for (std::size_t c = 1; c < chains; ++c) {
    most[0] = larger(most[c], most[0]);
    odd[0] += odd[c];
  }
  return {largest_of(most[0]), sum_of(odd[0]) == 0};
}

std::size_t next_from(const float* x, std::size_t from, std::size_t count, float least) {
  std::size_t i = from;
  for (; i + lanes <= count; i += lanes)
    if (const unsigned found = reaching(load_f32(x + i), least))
      return i + static_cast<std::size_t>(__builtin_ctz(found));
  for (; i < count; ++i)
    if (x[i] >= least) return i;
  return count;
}

// A group is the elements of one lane in `length` consecutive vectors.
std::size_t group_peaks(const float* x, std::size_t count, std::size_t most, float* out) {
  const std::size_t blocks = most / lanes;
  if (blocks == 0) return 0;
  const std::size_t length = count / (blocks * lanes);  // vectors of a group
  if (length == 0) return 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    const float* from = x + b * length * lanes;
    vec peak = load_f32(from);
    for (std::size_t i = 1; i < length; ++i) peak = larger(load_f32(from + i * lanes), peak);
    store_as(out + b * lanes, peak);
  }
  return blocks * lanes;
}

// exp((x - top) / temperature), as 2^n times a polynomial of degree 6 on [-ln 2 / 2, ln 2 / 2].
WEIR_INLINE vec weight_of(vec x, float top, float temperature) {
  constexpr float smallest_exponent = -86, smallest_weight = 1e-37f;
  x = larger((x - top) / temperature, all(smallest_exponent));
  const vec n = (rounded(x * 1.44269504f) + 12582912.0f) - 12582912.0f;  // rounds to the nearest whole number
  const vec r = (x - rounded(n * 0.693359375f)) + rounded(n * 2.12194440e-4f);
  vec p = all(1.0f / 720);
  p = rounded(p * r) + 1.0f / 120;
  p = rounded(p * r) + 1.0f / 24;
  p = rounded(p * r) + 1.0f / 6;
  p = rounded(p * r) + 0.5f;
  p = rounded(p * r) + 1.0f;
  p = rounded(p * r) + 1.0f;
  const ivec power = (__builtin_convertvector(n, ivec) + 127) << 23;
  const vec w = p * reinterpret_cast<vec>(power);
  return w >= all(smallest_weight) ? w : vec{};
}

void weigh_logits(const float* x, std::size_t count, float top, float temperature, float* out) {
  map(
      out, count,
      [&](const auto& at) __attribute__((always_inline)) { return weight_of(at(x), top, temperature); });
}

double sum_from(const float* weights, std::size_t count, float least) {
  constexpr std::size_t parts = 16, half = lanes / 2;
  typedef double sums __attribute__((vector_size(8 * half)));
  typedef float floats __attribute__((vector_size(4 * half)));
  sums part[parts / half] = {};
  std::size_t i = 0;
  for (; i + parts <= count; i += parts)
    WEIR_UNROLL
    for (std::size_t k = 0; k < parts / half; ++k) {
      const floats w = load_as<floats>(weights + i + k * half);
      const floats kept = w >= floats{} + least ? w : floats{};
      part[k] += __builtin_convertvector(kept, sums);
    }
  double sum = 0;
  for (; i < count; ++i) sum += weights[i] >= least ? weights[i] : 0.0f;
  for (const sums& s : part)
    for (std::size_t k = 0; k < half; ++k) sum += s[k];
  return sum;
}

void keep_through(const float* x, std::size_t count, float least, std::int32_t last, float* weights) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const vec l = load_f32(x + i), w = load_f32(weights + i);
    const ivec at = lane_numbers() + static_cast<std::int32_t>(i);
    const ivec kept = (l > all(least)) | ((l == all(least)) & (at <= last));
    store_as(weights + i, kept != 0 ? w : vec{});
  }
  for (; i < count; ++i)
    if (!(x[i] > least || (x[i] == least && static_cast<std::int32_t>(i) <= last))) weights[i] = 0;
}

void keep_from(float least, float* weights, std::size_t count) {
  map(
      weights, count, [&](const auto& at) __attribute__((always_inline)) {
        const vec w = at(weights);
        return w >= all(least) ? w : vec{};
      });
}

constexpr logit_loops loops_over_logits{
    .largest = largest_logit,
    .next = next_from,
    .group_peaks = group_peaks,
    .weigh = weigh_logits,
    .sum_from = sum_from,
    .keep_through = keep_through,
    .keep_from = keep_from,
};

}  // namespace
}  // namespace weir::kernels
