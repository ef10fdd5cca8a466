// Quantised weights of several types as one product, their columns in orders of their own, and the rows of a
// deterministic device. Skipped, saying so, where there is no device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <cmath>

#include "kernels/cuda/products/weight_products.h"
#include "tests/kernels/block_data.h"

namespace weir::tests::cuda_block_stacks_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

// Runs qkv of a model of one layer, whose parts have several types, by weight_products.
struct stack {
  std::vector<blocks_matrix> parts;
  std::vector<packed_blocks> packed;
  decoder_shape shape;

  stack(weir::tests::rng& r, const backend_ptr& b, std::initializer_list<dtype> types, std::uint32_t k,
        std::uint32_t later_rows = 128) {
    std::uint32_t rows = 256;
    for (const dtype type : types) {
      parts.emplace_back(r, type, rows, k);
      packed.emplace_back(b, parts.back().view);
      rows = later_rows;
    }
    decoder_layer l;
    l.qkv = packed[0].view;
    for (std::size_t i = 1; i < packed.size(); ++i) l.qkv_rest.push_back(packed[i].view);
    l.out = l.gate_up = l.down = packed[0].view;
    shape.layers = {l};
    shape.embedding = shape.head = packed[0].view;
  }
  std::uint32_t rows() const {
    std::uint32_t n = 0;
    for (const auto& p : parts) n += p.view.rows;
    return n;
  }
  float number_of(std::uint32_t row, std::uint32_t column) const {
    for (const auto& p : parts) {
      if (row < p.view.rows) return p.numbers[std::size_t{row} * p.view.cols + column];
      row -= p.view.rows;
    }
    return NAN;
  }
};

// For 300 rows.
void make_room(weight_products& all, const decoder_shape& s) {
  const auto room = product_room_of(s);
  all.reserve(room.rounded, 300 * std::size_t{room.ordered_width} * sizeof(element));
}

// Checks the product with qkv of `s` for few rows and for many. orders[i]: the inputs of part i; null: its
// columns are in order.
void check_stack(const backend_ptr& b, weir::tests::rng& r, const stack& s,
                 const std::vector<const ordered_inputs*>& orders, std::uint32_t width) {
  device& d = of(b->self);
  const std::uint32_t n = s.rows(), k = s.parts[0].view.cols;
  weight_products all(d, s.shape);
  make_room(all, s.shape);
  REQUIRE(all.has_room());
  for (const std::uint32_t m : {1u, 8u, 9u, 16u, 17u, 64u, 65u, 128u, 300u}) {
    if (d.deterministic && m % 64 != 0) continue;
    const auto x = random_elements(r, std::size_t{m} * width);
    const on_device dx(d, x);
    const on_device out(d, std::vector<float>(std::size_t{m} * n, NAN));
    const decoder_layer& l = s.shape.layers[0];
    all.run(l.qkv, l.qkv_rest, dx.get(), m, out.get(), product_out::f32, nullptr);
    const auto got = out.back();
    for (const float v : got) REQUIRE(!std::isnan(v));
    for (int i = 0; i < 400; ++i) {
      const std::uint32_t row = pick(r, 0, m - 1), column = i < 8 ? n - 1 - i : pick(r, 0, n - 1);
      std::size_t part = 0;
      for (std::uint32_t left = column; left >= s.parts[part].view.rows; ++part)
        left -= s.parts[part].view.rows;
      double wanted = 0, most = 0;
      for (std::uint32_t j = 0; j < k; ++j) {
        const std::uint32_t from = orders[part] ? orders[part]->numbers[j] : j;
        const double t =
            double{number(dtype::bf16, x[std::size_t{row} * width + from])} * s.number_of(column, j);
        wanted += t;
        most += std::abs(t);
      }
      CAPTURE(m, column, part);
      // Products of more than 8 rows round each weight to bf16, by 2^-8 at most.
      const double tolerance = (m > 8 || d.deterministic ? 1.02 * std::ldexp(1, -8) : 0) + std::ldexp(1, -16);
      REQUIRE(std::abs(got[std::size_t{row} * n + column] - wanted) <= tolerance * most);
    }
  }
  CHECK(d.fault == "");
}

}  // namespace

TEST_CASE("cuda: a stack of quantised weights of several types is one product, of few rows and of many") {
  const auto b = cuda_device();
  if (!b) return;
  weir::tests::rng r(25);
  const std::uint32_t k = 768;
  const stack s(r, b, {dtype::q4_k, dtype::q6_k, dtype::q8_0}, k);
  check_stack(b, r, s, {nullptr, nullptr, nullptr}, k);
}

TEST_CASE("cuda: parts of a stack multiply x in the order of their own inputs, of few rows and of many") {
  for (const bool deterministic : {false, true}) {
    const auto b = cuda_device(deterministic);
    if (!b) return;
    weir::tests::rng r(27);
    const std::uint32_t k = 768, width = 744;
    const ordered_inputs one(r, b, k, width), other(r, b, k, width);
    stack s(r, b, {dtype::int4, dtype::int8, dtype::int4_32, dtype::int4_32}, k);
    decoder_layer& l = s.shape.layers[0];
    one.give(l.qkv, width);
    one.give(l.qkv_rest[0], width);
    other.give(l.qkv_rest[1], width);
    one.give(l.qkv_rest[2], width);
    check_stack(b, r, s, {&one, &one, &other, &one}, width);
    // Beside parts whose columns are in order, where outputs do not begin at a multiple of 256 bytes.
    stack mixed(r, b, {dtype::int4, dtype::q8_0, dtype::int4}, k, 72);
    const ordered_inputs whole(r, b, k, k);
    whole.give(mixed.shape.layers[0].qkv_rest[0], k);
    check_stack(b, r, mixed, {nullptr, &whole, nullptr}, k);
  }
}

TEST_CASE("cuda: a row times quantised weights has its bits in any company on a deterministic device") {
  const auto b = cuda_device(true);
  if (!b) return;
  device& d = of(b->self);
  weir::tests::rng r(26);
  const std::uint32_t k = 1024, most = 256;
  const auto x = random_elements(r, std::size_t{most} * k);
  const on_device dx(d, x);
  for_block_types([&](dtype type) {
    const stack s(r, b, {type, dtype::q8_0}, k);
    weight_products all(d, s.shape);
    make_room(all, s.shape);
    std::vector<float> alone;
    for (const std::uint32_t m : {64u, 128u, 256u}) {  // decoders pad to a multiple of 64
      const on_device out(d, std::vector<float>(std::size_t{m} * s.rows(), NAN));
      const decoder_layer& l = s.shape.layers[0];
      all.run(l.qkv, l.qkv_rest, dx.get(), m, out.get(), product_out::f32, nullptr);
      auto got = out.back();
      for (const float v : got) REQUIRE(!std::isnan(v));
      if (alone.empty()) alone = got;
      got.resize(alone.size());
      CAPTURE(m);
      CHECK(same_bits(got, alone));
    }
  });
  CHECK(d.fault == "");
}

}  // namespace weir::tests::cuda_block_stacks_test

#endif
