// linear.h — dot products in tiles: a few rows of x against a few rows of w, so that neither is loaded twice.
//
// Each output has one vector accumulator, filled in the order of k and summed by one tree: the same bits
// whatever the tile, the batch and the number of threads.
#pragma once

#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

constexpr std::size_t tile_rows = 4;     // of x
constexpr std::size_t tile_outputs = 4;  // rows of w

template <dtype type, std::size_t rows, std::size_t outputs>
WEIR_INLINE void multiply_one(const linear_tile& t, std::size_t row, std::size_t output) {
  const std::size_t k = t.w.cols;
  const float* x = t.x + row * k;
  const std::size_t w = output * k;
  vec sums[rows][outputs] = {};
  const auto step = [&](const auto& load_x, const auto& load_w) __attribute__((always_inline)) {
    vec xs[rows];
    for (std::size_t r = 0; r < rows; ++r) xs[r] = load_x(r);
    for (std::size_t j = 0; j < outputs; ++j) {
      const vec ws = load_w(j);
      for (std::size_t r = 0; r < rows; ++r) sums[r][j] += xs[r] * ws;
    }
  };
  std::size_t i = 0;
  for (; i + lanes <= k; i += lanes)
    step(
        [&](std::size_t r) __attribute__((always_inline)) { return load_f32(x + r * k + i); },
        [&](std::size_t j)
            __attribute__((always_inline)) { return load_vec<type>(t.w.data, w + j * k + i); });
  if (i < k)
    step(
        [&](std::size_t r)
            __attribute__((always_inline)) { return load_part<dtype::f32>(x, r * k + i, k - i); },
        [&](std::size_t j)
            __attribute__((always_inline)) { return load_part<type>(t.w.data, w + j * k + i, k - i); });
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < outputs; ++j)
      t.out[(row + r) * t.out_stride + output + j] =
          sum_of(sums[r][j]) + (t.bias ? t.bias[output + j] : 0.0f);
}

template <dtype type, std::size_t outputs>
WEIR_INLINE void multiply_rows(const linear_tile& t, std::size_t output) {
  std::size_t row = 0;
  for (; row + tile_rows <= t.rows; row += tile_rows) multiply_one<type, tile_rows, outputs>(t, row, output);
  for (; row + 2 <= t.rows; row += 2) multiply_one<type, 2, outputs>(t, row, output);
  if (row < t.rows) multiply_one<type, 1, outputs>(t, row, output);
}

template <dtype type>
void multiply_typed(const linear_tile& t) {
  std::size_t output = t.first;
  for (; output + tile_outputs <= t.last; output += tile_outputs)
    multiply_rows<type, tile_outputs>(t, output);
  for (; output < t.last; ++output) multiply_rows<type, 1>(t, output);
}

void multiply(const linear_tile& t) {
  switch (t.w.type) {
    case dtype::f32:
      return multiply_typed<dtype::f32>(t);
    case dtype::bf16:
      return multiply_typed<dtype::bf16>(t);
    case dtype::f16:
      return multiply_typed<dtype::f16>(t);
  }
}

}  // namespace
}  // namespace weir::kernels
