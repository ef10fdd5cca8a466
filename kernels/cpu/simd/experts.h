// experts.h — loops of a mixture of experts: the router's products, the scores of a row, and the weighted sum
// of what its experts made.
#pragma once

#include "kernels/cpu/simd/pointwise.h"
#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

// The products of `rows` rows of x, from `row` on, and `outputs` rows of w, from `output` on. Each product
// has one vector of sums, to which it adds in the order of k: the same bits in every block.
template <std::size_t rows, std::size_t outputs>
void multiply_plain_block(const row_products& p, std::size_t row, std::size_t output) {
  const float *x = p.x + row * p.width, *w = p.w + output * p.width;
  vec sums[rows][outputs] = {};
  const auto add = [&](const auto& load) __attribute__((always_inline)) {
    vec xs[rows];
    WEIR_UNROLL_BY(4)
    for (std::size_t r = 0; r < rows; ++r) xs[r] = load(x + r * p.width);
    WEIR_UNROLL_BY(8)
    for (std::size_t n = 0; n < outputs; ++n) {
      const vec ws = load(w + n * p.width);
      WEIR_UNROLL_BY(4)
      for (std::size_t r = 0; r < rows; ++r) sums[r][n] = multiply_add(xs[r], ws, sums[r][n]);
    }
  };
  std::size_t i = 0;
  for (; i + lanes <= p.width; i += lanes)
    add([i](const float* from) __attribute__((always_inline)) { return load_f32(from + i); });
  if (i < p.width)
    add([&](const float* from)
            __attribute__((always_inline)) { return load_part<dtype::f32>(from, i, p.width - i); });
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t n = 0; n < outputs; ++n)
      p.out[(row + r) * p.out_stride + output + n] = sum_of(sums[r][n]);
}

// All outputs of `rows` rows. One row takes more outputs at once, so that as many additions are under way.
template <std::size_t rows>
void multiply_plain_outputs(const row_products& p, std::size_t row) {
  constexpr std::size_t at_once = rows == 1 ? 8 : 4;
  std::size_t n = 0;
  for (; n + at_once <= p.outputs; n += at_once) multiply_plain_block<rows, at_once>(p, row, n);
  for (; n < p.outputs; ++n) multiply_plain_block<rows, 1>(p, row, n);
}

void multiply_plain_rows(const row_products& p) {
  std::size_t r = 0;
  if constexpr (lanes == 16)
    for (; r + 4 <= p.rows; r += 4) multiply_plain_outputs<4>(p, r);
  for (; r + 2 <= p.rows; r += 2) multiply_plain_outputs<2>(p, r);
  for (; r < p.rows; ++r) multiply_plain_outputs<1>(p, r);
}

// The largest element; a NaN does not count.
WEIR_INLINE float largest_product(const float* x, std::size_t count) {
  vec most = all(-__builtin_inff());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) most = larger(load_f32(x + i), most);
  float largest = largest_of(most);
  for (; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

void score_row(const float* products, float* to, std::size_t count, bool sigmoid) {
  if (sigmoid)
    return map(
        to, count, [&](const auto& at) __attribute__((always_inline)) {
          return sigmoid_share(all(1.0f), -at(products));
        });
  const float largest = largest_product(products, count);
  map(
      to,
      count, [&](const auto& at) __attribute__((always_inline)) { return exp_of(at(products) - largest); });
  const float total = sum_over<false>(
      to, count, [](vec v) __attribute__((always_inline)) { return v; });
  map(
      to, count, [&](const auto& at) __attribute__((always_inline)) { return at(to) / total; });
}

void mix_row(const float* y, const float* weights, std::size_t chosen, const float* shared, float gate,
             float* out, std::size_t width) {
  map(
      out, width, [&](const auto& at) __attribute__((always_inline)) {
        vec sum{};
        for (std::size_t i = 0; i < chosen; ++i)
          sum = multiply_add(broadcast(weights[i]), at(y + i * width), sum);
        return shared ? multiply_add(broadcast(gate), at(shared), sum) : sum;
      });
}

}  // namespace
}  // namespace weir::kernels
