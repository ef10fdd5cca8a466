// Quantised weights on a device: their layout and back, bit for bit; products of few rows against sums in
// double; and a deterministic device's rows. Skipped, saying so, where there is no device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/blocks.h"
#include "kernels/buffer.h"
#include "kernels/cuda/block_layout.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/stream_blocks.h"
#include "kernels/cuda/weight_products.h"
#include "kernels/host_buffer.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::cuda_blocks_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

using backend_ptr = std::shared_ptr<const backend>;

void for_block_types(const std::function<void(dtype)>& f) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<dtype>(i);
    if (is_plain(type)) continue;
    CAPTURE(name(type));
    f(type);
  }
}

// Random blocks, some of them all zeros and some with codes at one end; their numbers.
struct blocks_matrix {
  std::vector<std::byte> memory;
  matrix view;
  std::vector<float> numbers;

  blocks_matrix(weir::tests::rng& r, dtype type, std::uint32_t rows, std::uint32_t cols)
      : memory(bytes_of(type, std::uint64_t{rows} * cols)),
        view{memory.data(), type, rows, cols},
        numbers(std::size_t{rows} * cols) {
    weir::kernels::fill_random_blocks(memory.data(), type, numbers.size(), r());
    weir::tests::make_some_extreme(r, type, rows, cols, memory.data());
    dequantise(type, memory.data(), numbers.size(), numbers.data());
  }
};

struct packed_blocks {
  buffer memory;
  matrix view;

  packed_blocks(const backend_ptr& b, const matrix& rows)
      : memory(b, b->weight_bytes(b->self, rows.type, rows.rows, rows.cols)), view(rows) {
    const std::vector<std::byte> poison(memory.size(), std::byte{0xff});
    b->do_upload(b->self, memory.data(), poison.data(), poison.size());
    b->do_pack(b->self, rows, memory.data());
    view.data = memory.data();
    view.order = layout::packed;
  }
  std::vector<std::byte> bytes(const backend_ptr& b) const {
    std::vector<std::byte> v(memory.size());
    b->do_download(b->self, v.data(), memory.data(), v.size());
    return v;
  }
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

std::uint32_t columns_of(weir::tests::rng& r, dtype type) {
  return facts(type).block_weights * pick(r, 1, facts(type).block_weights == 32 ? 21 : 5);
}

std::vector<element> random_elements(weir::tests::rng& r, std::size_t count) {
  std::vector<element> out(count);
  const auto v = random_floats(r, count);
  for (std::size_t i = 0; i < count; ++i) out[i] = rounded(dtype::bf16, v[i]);
  return out;
}

}  // namespace

TEST_CASE("cuda: quantised weights come back from the device's layout bit for bit") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  weir::tests::rng r(21);
  for_block_types([&](dtype type) {
    for (int round = 0; round < 4; ++round) {
      const std::uint32_t n = pick(r, 1, 90), k = columns_of(r, type);
      CAPTURE(n, k);
      const blocks_matrix w(r, type, n, k);
      const packed_blocks packed(b, w.view);
      const std::uint32_t first = n > 8 ? pick(r, 0, n / 8 - 1) * 8 : 0, count = n - first, margin = 64;
      const std::size_t elements = std::size_t{count} * k;
      const on_device floats(d, std::vector<float>(elements + margin, NAN));
      const on_device halves(d, std::vector<element>(elements + margin, element{0xffff}));
      unpack_blocks(d, packed.view, first, count, floats.get());
      unpack_blocks(d, packed.view, first, count, halves.get());
      std::vector<float> wanted(w.numbers.begin() + std::size_t{first} * k, w.numbers.end());
      auto got = floats.back();
      for (std::size_t i = elements; i < got.size(); ++i) REQUIRE(std::isnan(got[i]));
      got.resize(elements);
      CHECK(same_bits(got, wanted));
      const auto few = halves.back();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < elements; ++i) wrong += few[i].bits != to_bf16(wanted[i]);
      for (std::size_t i = elements; i < few.size(); ++i) wrong += few[i].bits != 0xffff;
      CHECK(wrong == 0);
      std::vector<std::int32_t> ids{static_cast<std::int32_t>(n - 1), 0, static_cast<std::int32_t>(n / 2)};
      const on_device rows(d, std::vector<float>(ids.size() * k, NAN));
      b->run(gather{packed.view, ids, rows.get()});
      const auto read = rows.back();
      for (std::size_t i = 0; i < ids.size(); ++i)
        CHECK(std::memcmp(read.data() + i * k, w.numbers.data() + static_cast<std::size_t>(ids[i]) * k,
                          k * sizeof(float)) == 0);
    }
  });
  CHECK(d.fault == "");
}

TEST_CASE(
    "cuda: quantised weights that are uploaded in slices, or made at random, are packed as a whole matrix") {
  const auto b = cuda_device();
  if (!b) return;
  weir::tests::rng r(22);
  for_block_types([&](dtype type) {
    const std::uint32_t n = pick(r, 20, 70), k = columns_of(r, type);
    CAPTURE(n, k);
    const blocks_matrix w(r, type, n, k);
    const packed_blocks whole(b, w.view);
    const auto wanted = whole.bytes(b);
    packed_blocks sliced(b, w.view);
    sliced.memory = buffer(b, wanted.size());
    sliced.view.data = sliced.memory.data();
    const std::uint64_t row = bytes_of(type, k);
    const host_buffer lane(b, n * row);
    for (std::uint32_t at = 0; at < n;) {
      const std::uint32_t some = std::min(pick(r, 1, 13), n - at);
      std::memcpy(lane.data() + at * row, w.memory.data() + at * row, some * row);
      b->do_begin_pack(b->self, sliced.view, {at, {lane.data() + at * row, type, some, k}}, at % 3);
      at += some;
    }
    for (unsigned i = 0; i < 3; ++i) b->do_await_upload(b->self, i);
    CHECK(sliced.bytes(b) == wanted);

    std::vector<std::byte> rows(w.memory.size());
    const std::uint32_t half = n / 2;
    weir::kernels::fill_random_blocks(rows.data(), type, std::uint64_t{half} * k, 5);
    weir::kernels::fill_random_blocks(rows.data() + half * row, type, std::uint64_t{n - half} * k, 6);
    const packed_blocks made(b, {rows.data(), type, n, k});
    const buffer there(b, wanted.size());
    matrix random = w.view;
    random.data = there.data();
    b->do_fill_random(b->self, random, 0, half, false, 5);
    b->do_fill_random(b->self, random, half, n - half, false, 6);
    std::vector<std::byte> got(wanted.size());
    b->do_download(b->self, got.data(), there.data(), got.size());
    CHECK(got == made.bytes(b));
  });
  CHECK(b->fault(b->self) == nullptr);
}

TEST_CASE("cuda: linear with quantised weights equals the reference, and writes its own columns alone") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  weir::tests::rng r(23);
  for_block_types([&](dtype type) {
    const std::uint32_t rows = pick(r, 1, 11), n = pick(r, 1, 90), k = columns_of(r, type), wide = n + 7;
    CAPTURE(rows, n, k);
    const blocks_matrix w(r, type, n, k);
    const packed_blocks packed(b, w.view);
    const auto x = random_floats(r, std::size_t{rows} * k), bias = random_floats(r, n);
    std::vector<float> wanted(std::size_t{rows} * n);
    reference_backend()->run(linear{w.view, bias.data(), x.data(), wanted.data(), rows});
    const on_device dx(d, x), dbias(d, bias), out(d, std::vector<float>(std::size_t{rows} * wide, NAN));
    b->run(linear{packed.view, dbias.get(), dx.get(), out.get(), rows, wide});
    const auto all = out.back();
    std::vector<float> got;
    for (std::uint32_t i = 0; i < rows; ++i) {
      got.insert(got.end(), all.begin() + i * wide, all.begin() + i * wide + n);
      for (std::uint32_t j = n; j < wide; ++j) REQUIRE(std::isnan(all[i * wide + j]));
    }
    CHECK(weir::tests::worst_difference(wanted, got) <= 3e-5);
  });
  CHECK(d.fault == "");
}

namespace {

// Checks one product, into poisoned memory whose rows are 8 columns longer than the product's. `normed`: with
// a norm in front, of row 1 of two.
void check_product(const backend_ptr& b, weir::tests::rng& r, const blocks_matrix& w, const matrix& packed,
                   std::uint32_t m, product_out kind, bool normed = false) {
  device& d = of(b->self);
  const std::uint32_t k = w.view.cols, n = kind == product_out::silu ? w.view.rows / 2 : w.view.rows,
                      wide = n + 8;
  const bool narrow = kind == product_out::element || kind == product_out::silu;
  auto x = random_elements(r, std::size_t{m} * k);
  const auto rows = random_floats(r, std::size_t{2} * k);
  auto weight = random_floats(r, k, 0.1f);
  for (float& v : weight) v += 1;
  double squares = 0;
  for (std::uint32_t i = 0; normed && i < k; ++i) {
    squares += double{rows[k + i]} * rows[k + i];
    x[i] = rounded(dtype::bf16, rows[k + i] * weight[i]);
  }
  const float eps = 1e-5f;
  const double factor = normed ? 1 / std::sqrt(squares / k + eps) : 1;
  // NaN as floats and as elements.
  std::vector<float> before(std::size_t{m} * wide, std::bit_cast<float>(0xffffffffu));
  if (kind == product_out::add_f32)
    for (std::uint32_t i = 0; i < m; ++i)
      for (std::uint32_t j = 0; j < n; ++j) before[i * wide + j] = static_cast<float>(j % 7);
  const on_device dx(d, x);
  const on_device out(d, before);
  const on_device drows(d, rows), dweight(d, weight);
  const on_device dfrom(d, std::vector<std::int32_t>{1});
  block_product p{packed, normed ? nullptr : dx.get(), m, out.get(), kind, wide};
  if (normed) p.norm = {drows.get(), dweight.get(), dfrom.get(), eps};
  CAPTURE(m, w.view.rows, k, static_cast<int>(kind));
  REQUIRE(can_stream_blocks(d, p));
  stream_blocks(d, p);
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
    const double second = kind == product_out::silu ? sum(row, column + n, size, most_up) : 0;
    const double wanted = kind == product_out::silu ? first / (1 + std::exp(-first)) * second : first + was;
    // The size of a sum of random terms. Sums with minima and without are up to 16 times as large.
    const double typical = std::sqrt(size), unit = 16 * typical + std::abs(was);
    double tolerance = std::ldexp(k / 16 + 16, -23) * unit;
    if (narrow) tolerance += 0.006 * (std::abs(wanted) + typical / 16);
    // Products of more than 8 rows round each weight to bf16, by 2^-8 at most, and equal weights by the same
    // amount, so that errors add up. SwiGLU has a slope of at most 1.1 in its gate.
    const double rounding = m > 8 ? 1.02 * std::ldexp(1, -8) : 0;
    if (kind == product_out::silu)
      tolerance += rounding * (1.1 * most * std::abs(second) + most_up * (std::abs(first) + most / 500));
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
             {product_out::element, product_out::f32, product_out::add_f32, product_out::silu}) {
          if (m > most_tiled_rows && of(b->self).path != code_path::hopper) continue;
          check_product(b, r, w, packed.view, m, kind);
        }
    }
    // More tiles than blocks run at once.
    const blocks_matrix tall(r, type, 33888, block);
    const packed_blocks tall_packed(b, tall.view);
    for (const std::uint32_t m : {20u, 60u, 70u, 200u})
      if (m <= most_tiled_rows || of(b->self).path == code_path::hopper)
        check_product(b, r, tall, tall_packed.view, m, product_out::silu);
    const blocks_matrix odd(r, type, 105, block);
    const packed_blocks packed(b, odd.view);
    check_product(b, r, odd, packed.view, 3, product_out::f32);
  });
  CHECK(of(b->self).fault == "");
}

TEST_CASE("cuda: a norm in front of a product of one row with quantised weights is a part of it") {
  const auto b = cuda_device();
  if (!b || of(b->self).path != code_path::hopper) return;
  weir::tests::rng r(26);
  for_block_types([&](dtype type) {
    const std::uint32_t block = facts(type).block_weights;
    for (const std::uint32_t k : {block, block * 5, 2560u, 4096 + 2 * block}) {
      const blocks_matrix w(r, type, 272, k);
      const packed_blocks packed(b, w.view);
      for (const product_out kind : {product_out::element, product_out::f32, product_out::silu}) {
        const bool can = can_stream_normed(of(b->self), {packed.view, nullptr, 1, nullptr, kind});
        CHECK((can || k > 4096));
        if (can) check_product(b, r, w, packed.view, 1, kind, true);
      }
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
      const block_product p{packed.view, from, m, out.get(), product_out::silu, 0, x_order, out_order};
      if (!takes_wide_blocks(d, p)) return std::vector<element>();
      stream_blocks(d, p);
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
    norm(d, dtype::bf16, stream.get(), nullptr, nullptr, weight.get(), rows, k, 1e-5f, out.get(), order);
    return out.back();
  };
  CHECK(same_elements(norm_in(column_order::paired), paired(norm_in(column_order::plain), k)));
  CHECK(d.fault == "");
}

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

}  // namespace

TEST_CASE("cuda: a stack of quantised weights of several types is one product, of few rows and of many") {
  const auto b = cuda_device();
  if (!b) return;
  device& d = of(b->self);
  weir::tests::rng r(25);
  const std::uint32_t k = 768;
  const stack s(r, b, {dtype::q4_k, dtype::q6_k, dtype::q8_0}, k);
  const std::uint32_t n = s.rows();
  weight_products all(d, s.shape);
  all.reserve(300);
  REQUIRE(all.has_room());
  for (const std::uint32_t m : {1u, 16u, 17u, 64u, 65u, 128u, 300u}) {
    const auto x = random_elements(r, std::size_t{m} * k);
    const on_device dx(d, x);
    const on_device out(d, std::vector<float>(std::size_t{m} * n, NAN));
    const decoder_layer& l = s.shape.layers[0];
    all.run(l.qkv, l.qkv_rest, dx.get(), m, out.get(), product_out::f32, nullptr);
    const auto got = out.back();
    for (int i = 0; i < 400; ++i) {
      const std::uint32_t row = pick(r, 0, m - 1), column = i < 8 ? n - 1 - i : pick(r, 0, n - 1);
      double wanted = 0, most = 0;
      for (std::uint32_t j = 0; j < k; ++j) {
        const double t = double{number(dtype::bf16, x[std::size_t{row} * k + j])} * s.number_of(column, j);
        wanted += t;
        most += std::abs(t);
      }
      CAPTURE(m, column);
      // Products of more than 8 rows round each weight to bf16, by 2^-8 at most.
      const double tolerance = (m > 8 ? 1.02 * std::ldexp(1, -8) : 0) + std::ldexp(1, -16);
      REQUIRE(std::abs(got[std::size_t{row} * n + column] - wanted) <= tolerance * most);
    }
  }
  CHECK(d.fault == "");
}

namespace {

// The inputs of a matrix' columns, on the device.
struct ordered_inputs {
  std::vector<std::uint32_t> numbers;
  buffer memory;

  ordered_inputs(weir::tests::rng& r, const backend_ptr& b, std::uint32_t columns, std::uint32_t count)
      : numbers(columns), memory(b, columns * sizeof(std::uint32_t)) {
    for (auto& i : numbers) i = pick(r, 0, count - 1);
    b->do_upload(b->self, memory.data(), numbers.data(), memory.size());
  }
  void give(matrix& m, std::uint32_t count) const {
    m.input_count = count;
    m.inputs = reinterpret_cast<const std::uint32_t*>(memory.data());
  }
};

// Checks the product with qkv of `s` for few rows and for many. orders[i]: the inputs of part i; null: its
// columns are in order.
void check_ordered(const backend_ptr& b, weir::tests::rng& r, const stack& s,
                   const std::vector<const ordered_inputs*>& orders, std::uint32_t width) {
  device& d = of(b->self);
  const std::uint32_t n = s.rows(), k = s.parts[0].view.cols;
  weight_products all(d, s.shape);
  all.reserve(300);
  REQUIRE(all.has_room());
  for (const std::uint32_t m : {1u, 8u, 9u, 64u, 65u, 128u, 300u}) {
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
      const double tolerance = (m > 8 || d.deterministic ? 1.02 * std::ldexp(1, -8) : 0) + std::ldexp(1, -16);
      REQUIRE(std::abs(got[std::size_t{row} * n + column] - wanted) <= tolerance * most);
    }
  }
  CHECK(d.fault == "");
}

}  // namespace

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
    check_ordered(b, r, s, {&one, &one, &other, &one}, width);
    // Beside parts whose columns are in order, where outputs do not begin at a multiple of 256 bytes.
    stack mixed(r, b, {dtype::int4, dtype::q8_0, dtype::int4}, k, 72);
    const ordered_inputs whole(r, b, k, k);
    whole.give(mixed.shape.layers[0].qkv_rest[0], k);
    check_ordered(b, r, mixed, {nullptr, &whole, nullptr}, k);
  }
}

TEST_CASE("cuda: the operation multiplies x in the order of the weights' inputs, as the reference does") {
  const auto b = cuda_device();
  if (!b) return;
  weir::tests::rng r(28);
  for_block_types([&](dtype type) {
    const std::uint32_t k = columns_of(r, type), width = pick(r, 1, k), n = pick(r, 1, 90),
                        m = pick(r, 1, 20);
    const blocks_matrix w(r, type, n, k);
    const packed_blocks packed(b, w.view);
    const ordered_inputs inputs(r, b, k, width);
    const auto x = random_floats(r, std::size_t{m} * width);
    const buffer there(b, x.size() * 4), out(b, std::size_t{m} * n * 4);
    std::vector<float> wanted(std::size_t{m} * n, NAN), got(wanted);
    b->do_upload(b->self, there.data(), x.data(), there.size());
    b->do_upload(b->self, out.data(), got.data(), out.size());
    matrix on_host = w.view, on_device = packed.view;
    on_host.input_count = width;
    on_host.inputs = inputs.numbers.data();
    inputs.give(on_device, width);
    weir::kernels::reference_backend()->run(linear{on_host, nullptr, x.data(), wanted.data(), m});
    b->run(linear{on_device, nullptr, there.floats(), out.floats(), m});
    b->do_download(b->self, got.data(), out.data(), out.size());
    CAPTURE(n, k, width, m);
    CHECK(weir::tests::worst_difference(wanted, got) <= 3e-5);
  });
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
    all.reserve(300);
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

}  // namespace weir::tests::cuda_blocks_test

#endif
