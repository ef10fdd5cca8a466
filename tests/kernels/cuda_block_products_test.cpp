// Products of a device with quantised weights, against sums in double. Skipped, saying so, where there is no
// device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernels/cuda/layers.h"
#include "kernels/cuda/products/launch_product.h"
#include "tests/kernels/block_data.h"

namespace weir::tests::cuda_block_products_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

// Whether a norm in front of the product is a part of it.
bool takes_norm(const device& d, block_product p) {
  const float any = 0;
  p.norm.rows = &any;
  return function_for(d, p) != product_function::none;
}

double activated(activation f, double g) {
  return f == activation::silu ? g / (1 + std::exp(-g))
                               : 0.5 * g * (1 + std::tanh(0.7978845608 * (g + 0.044715 * g * g * g)));
}

// Checks one product, into poisoned memory whose rows are 8 columns longer than the product's. `normed`: with
// a norm in front, of row 1 of two. `inputs`: of the columns, where the product is to put its row in order.
void check_product(const backend_ptr& b, weir::tests::rng& r, const blocks_matrix& w, const matrix& packed,
                   std::uint32_t m, product_out kind, bool normed = false,
                   const std::vector<std::uint32_t>& inputs = {}) {
  device& d = of(b->self);
  const std::uint32_t k = w.view.cols, n = kind == product_out::gated ? w.view.rows / 2 : w.view.rows,
                      wide = n + 8;
  const bool narrow = kind == product_out::element || kind == product_out::gated;
  auto x = random_elements(r, std::size_t{m} * k);
  const auto rows = random_floats(r, std::size_t{2} * k);
  auto weight = random_floats(r, k, 0.1f);
  for (float& v : weight) v += 1;
  const on_device dx(d, x);
  double squares = 0;
  for (std::uint32_t i = 0; normed && i < k; ++i) {
    squares += double{rows[k + i]} * rows[k + i];
    x[i] = rounded(dtype::bf16, rows[k + i] * weight[i]);
  }
  const auto stored = x;
  for (std::size_t i = 0; i < inputs.size(); ++i) x[i] = stored[inputs[i]];
  const float eps = 1e-5f;
  const double factor = normed ? 1 / std::sqrt(squares / k + eps) : 1;
  // NaN as floats and as elements.
  std::vector<float> before(std::size_t{m} * wide, std::bit_cast<float>(0xffffffffu));
  if (kind == product_out::add_f32)
    for (std::uint32_t i = 0; i < m; ++i)
      for (std::uint32_t j = 0; j < n; ++j) before[i * wide + j] = static_cast<float>(j % 7);
  const on_device out(d, before);
  const on_device drows(d, rows), dweight(d, weight);
  const on_device dfrom(d, std::vector<std::int32_t>{1});
  block_product p{packed, normed ? nullptr : dx.get(), m, out.get(), kind, wide};
  if (normed) p.norm = {drows.get(), dweight.get(), dfrom.get(), eps};
  p.gathers = !inputs.empty();
  p.gate = (m + w.view.rows / 16) % 2 ? activation::gelu : activation::silu;
  CAPTURE(m, w.view.rows, k, static_cast<int>(kind), p.gathers);
  const product_function by = function_for(d, p);
  REQUIRE(reads_blocks(by));
  launch_product(d, by, p);
  const auto floats = out.back();
  const auto halves = out.back<element>();
  const auto at = [&](std::size_t i) { return narrow ? number(dtype::bf16, halves[i]) : floats[i]; };
  // Also adds up squares of the terms in `size`, and their absolutes in `most`.
  const auto sum = [&](std::uint32_t row, std::uint32_t column, double& size, double& most) {
    double v = 0;
    for (std::uint32_t i = 0; i < k; ++i) {
      const double t =
          factor * number(dtype::bf16, x[std::size_t{row} * k + i]) * w.numbers[std::size_t{column} * k + i];
      v += t;
      size += t * t;
      most += std::abs(t);
    }
    return v;
  };
  std::size_t unwritten = 0, over = 0;
  for (std::uint32_t i = 0; i < m; ++i)
    for (std::uint32_t j = 0; j < wide; ++j)
      (j < n ? unwritten : over) += std::isnan(at(std::size_t{i} * wide + j)) == (j < n);
  REQUIRE(unwritten == 0);
  REQUIRE(over == 0);
  for (int i = 0; i < 150; ++i) {
    const std::uint32_t row = i < 4 ? m - 1 : pick(r, 0, m - 1),
                        column = i < 8 ? n - 1 - static_cast<std::uint32_t>(i) % n : pick(r, 0, n - 1);
    double size = 0, most = 0, most_up = 0;
    const double first = sum(row, column, size, most);
    const double was = kind == product_out::add_f32 ? column % 7 : 0;
    const double second = kind == product_out::gated ? sum(row, column + n, size, most_up) : 0;
    const double wanted = kind == product_out::gated ? activated(p.gate, first) * second : first + was;
    // The size of a sum of random terms. Sums with minima and without are up to 16 times as large.
    const double typical = std::sqrt(size), unit = 16 * typical + std::abs(was);
    double tolerance = std::ldexp(k / 16 + 16, -23) * unit;
    if (narrow) tolerance += 0.006 * (std::abs(wanted) + typical / 16);
    // Products of more than 8 rows round each weight to bf16, by 2^-8 at most, and equal weights by the same
    // amount, so that errors add up. The activations have slopes of at most 1.13.
    const double rounding = m > 8 ? 1.02 * std::ldexp(1, -8) : 0;
    if (kind == product_out::gated)
      tolerance += rounding * (1.13 * most * std::abs(second) + most_up * (std::abs(first) + most / 500));
    else
      tolerance += rounding * most;
    REQUIRE(std::abs(at(std::size_t{row} * wide + column) - wanted) <= tolerance);
  }
}

}  // namespace

TEST_CASE("cuda: products of few rows with quantised weights equal their definition in double") {
  const auto b = cuda_device();
  if (!b) return;
  weir::tests::rng r(24);
  struct shape {
    std::uint32_t n, k;
  };
  for_block_types([&](dtype type) {
    const std::uint32_t block = facts(type).block_weights;
    for (const shape s : {shape{48, block}, {208, block * 5}, {1040, 2560}, {128, 4096 + 2 * block}}) {
      const blocks_matrix w(r, type, s.n, s.k);
      const packed_blocks packed(b, w.view);
      for (const std::uint32_t m : {1u, 7u, 8u, 9u, 16u, 17u, 32u, 33u, 64u, 100u, 128u, 129u, 255u})
        for (const product_out kind :
             {product_out::element, product_out::f32, product_out::add_f32, product_out::gated}) {
          if (m > most_tiled_rows && of(b->self).path != code_path::hopper) continue;
          check_product(b, r, w, packed.view, m, kind);
        }
    }
    // More tiles than blocks run at once.
    const blocks_matrix tall(r, type, 33888, block);
    const packed_blocks tall_packed(b, tall.view);
    for (const std::uint32_t m : {20u, 60u, 70u, 200u})
      if (m <= most_tiled_rows || of(b->self).path == code_path::hopper)
        check_product(b, r, tall, tall_packed.view, m, product_out::gated);
    // More rows than a tile has, by clusters that share weights.
    const blocks_matrix low(r, type, 1040, block * 3);
    const packed_blocks low_packed(b, low.view);
    for (const std::uint32_t m : {257u, 300u, 1030u})
      for (const product_out kind :
           {product_out::element, product_out::f32, product_out::add_f32, product_out::gated})
        if (of(b->self).path == code_path::hopper) check_product(b, r, low, low_packed.view, m, kind);
    const blocks_matrix odd(r, type, 105, block);
    const packed_blocks packed(b, odd.view);
    check_product(b, r, odd, packed.view, 3, product_out::f32);
  });
  CHECK(of(b->self).fault == "");
}

TEST_CASE("cuda: a product of one row with quantised weights has its norm and its order of inputs in it") {
  const auto b = cuda_device();
  if (!b || of(b->self).path != code_path::hopper) return;
  weir::tests::rng r(26);
  for_block_types([&](dtype type) {
    const std::uint32_t block = facts(type).block_weights;
    for (const std::uint32_t k : {block, block * 5, 2560u, 4096 + 2 * block}) {
      const blocks_matrix w(r, type, 272, k);
      const packed_blocks packed(b, w.view);
      for (const product_out kind : {product_out::element, product_out::f32, product_out::gated}) {
        const bool can = takes_norm(of(b->self), {packed.view, nullptr, 1, nullptr, kind});
        CHECK((can || k > 4096));
        if (can) check_product(b, r, w, packed.view, 1, kind, true);
      }
      std::vector<std::uint32_t> inputs(k);
      std::iota(inputs.begin(), inputs.end(), 0);
      std::ranges::shuffle(inputs, r);
      const on_device on(of(b->self), inputs);
      matrix shuffled = packed.view;
      shuffled.input_count = k;
      shuffled.inputs = on.get();
      for (const bool normed : {false, true})
        for (const product_out kind : {product_out::f32, product_out::gated})
          if (takes_norm(of(b->self), {packed.view, nullptr, 1, nullptr, kind}))
            check_product(b, r, w, shuffled, 1, kind, normed, inputs);
      matrix padded = shuffled;
      padded.input_count = k - 1;
      block_product p{padded, nullptr, 1, nullptr, product_out::f32};
      p.gathers = true;
      CHECK_FALSE(takes_norm(of(b->self), p));
    }
  });
  CHECK(of(b->self).fault == "");
}

namespace {

// `rows` of `width` elements, in paired order.
std::vector<element> paired(const std::vector<element>& rows, std::uint32_t width) {
  std::vector<element> out(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t row = i / width * width, column = i % width, pair = column % 16 / 2;
    out[row + column / 16 * 16 + (pair % 2 * 4 + pair / 2) * 2 + column % 2] = rows[i];
  }
  return out;
}
bool same_elements(const std::vector<element>& a, const std::vector<element>& b) {
  return std::ranges::equal(a, b, {}, &element::bits, &element::bits);
}

}  // namespace

TEST_CASE("cuda: paired rows give the products of plain ones, and paired outputs are those in that order") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  weir::tests::rng r(29);
  const std::uint32_t n = 544, k = 800;
  const blocks_matrix w(r, dtype::q8_0, n, k);
  const packed_blocks packed(b, w.view);
  for (const std::uint32_t m : {9u, 64u, 128u, 200u}) {
    const auto x = random_elements(r, std::size_t{m} * k);
    const on_device plain(d, x), ordered(d, paired(x, k));
    const auto product_of = [&](const element* from, column_order x_order, column_order out_order) {
      const on_device out(d, std::vector<element>(std::size_t{m} * n / 2, element{0xffff}));
      const block_product p{packed.view, from, m, out.get(), product_out::gated, 0, x_order, out_order};
      if (function_for(d, p) != product_function::wide_blocks) return std::vector<element>();
      launch_product(d, product_function::wide_blocks, p);
      return out.back();
    };
    const auto wanted = product_of(plain.get(), column_order::plain, column_order::plain);
    if (wanted.empty()) return;  // the general path has no paired rows
    CAPTURE(m);
    CHECK(same_elements(product_of(ordered.get(), column_order::paired, column_order::plain), wanted));
    CHECK(same_elements(product_of(ordered.get(), column_order::paired, column_order::paired),
                        paired(wanted, n / 2)));
  }
  const std::uint32_t rows = 7;
  const on_device stream(d, random_floats(r, rows * k)), weight(d, random_floats(r, k));
  const auto norm_in = [&](column_order order) {
    const on_device out(d, std::vector<element>(rows * k, element{0xffff}));
    norm(d, dtype::bf16, stream.get(), {}, nullptr, {{weight.get()}, 1e-5f}, rows, k, out.get(), order);
    return out.back();
  };
  CHECK(same_elements(norm_in(column_order::paired), paired(norm_in(column_order::plain), k)));
  CHECK(d.fault == "");
}

}  // namespace weir::tests::cuda_block_products_test

#endif
