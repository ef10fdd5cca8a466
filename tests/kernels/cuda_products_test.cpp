// Products on the device against their definition in double, over shapes that are whole tiles and shapes that
// are not; skipped, saying so, where there is no device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/products/launch_product.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::cuda_products_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

constexpr product_out kinds[] = {product_out::element, product_out::f32, product_out::add_f32,
                                 product_out::gated};
constexpr dtype types[] = {dtype::bf16, dtype::f16};

// Whether a kernel that reads the weights once, of our own, is the quickest for the product.
bool streams(const device& d, const product& p) {
  const product_function by = function_for(d, p);
  return by != product_function::none && by != product_function::blas && by != product_function::tile_product;
}
void stream(device& d, const product& p) { launch_product(d, function_for(d, p), p); }

// Multiplies as a decoder does where nothing streams.
void multiply(device& d, cuda::products& all, const product& p, void* scratch) {
  if (!d.lt) return tile_product(d, p);
  all.run(p, {}, scratch);
}

std::vector<element> random_elements(weir::tests::rng& r, dtype type, std::size_t count) {
  const auto v = random_floats(r, count);
  std::vector<element> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = rounded(type, v[i]);
  return out;
}

struct shape {
  std::uint32_t n, k;
};

// Products of gate and up have one activation or the other.
activation gate_for(std::uint32_t m) { return m % 2 ? activation::gelu : activation::silu; }
double activated(activation f, double g) {
  return f == activation::silu ? g / (1 + std::exp(-g))
                               : 0.5 * g * (1 + std::tanh(0.7978845608 * (g + 0.044715 * g * g * g)));
}

// x · wᵀ of random data for one shape and the most rows that are asked for.
struct sample {
  dtype type;
  shape s;
  std::vector<element> w, x;
  double factor = 1;  // of every sum
  sample(weir::tests::rng& r, dtype t, shape of, std::uint32_t rows)
      : type(t),
        s(of),
        w(random_elements(r, t, std::size_t{of.n} * of.k)),
        x(random_elements(r, t, std::size_t{rows} * of.k)) {}

  double sum(std::uint32_t row, std::uint32_t column) const {
    double v = 0;
    for (std::uint32_t i = 0; i < s.k; ++i)
      v += double{number(type, x[std::size_t{row} * s.k + i])} *
           number(type, w[std::size_t{column} * s.k + i]);
    return v * factor;
  }
  double wanted(product_out kind, activation gate, std::uint32_t row, std::uint32_t column,
                double before) const {
    const double first = sum(row, column);
    const double v =
        kind == product_out::gated ? activated(gate, first) * sum(row, column + s.n / 2) : first + before;
    const bool narrow = kind == product_out::element || kind == product_out::gated;
    return narrow && type == dtype::f16 ? std::clamp(v, -65504.0, 65504.0) : v;
  }
};

// Runs a product into poisoned memory with a margin behind. All elements must be written and the margin must
// not; 400 elements are compared with their definition.
template <class Run>
void check(device& d, weir::tests::rng& r, const sample& of, const on_device<element>& w,
           const on_device<element>& x, std::uint32_t m, product_out kind, const Run& run) {
  const bool narrow = kind == product_out::element || kind == product_out::gated;
  const std::uint32_t n = kind == product_out::gated ? of.s.n / 2 : of.s.n;
  const std::size_t count = std::size_t{m} * n, margin = 64, size = narrow ? 2 : 4;
  std::vector<float> before(count);
  std::vector<std::byte> memory((count + margin) * size, std::byte{0xff});
  if (kind == product_out::add_f32) {
    before = random_floats(r, count);
    std::memcpy(memory.data(), before.data(), count * size);
  }
  const on_device<std::byte> out(d, memory);
  product p{of.type, w.get(), of.s.n, of.s.k, x.get(), m, out.as<void>(), kind};
  p.gate = gate_for(m);
  run(p);
  std::vector<float> got(count + margin);
  if (narrow) {
    const auto v = out.back<element>();
    for (std::size_t i = 0; i < v.size(); ++i) got[i] = number(of.type, v[i]);
  } else {
    got = out.back<float>();
  }
  INFO(name(of.type) << " m " << m << " n " << of.s.n << " k " << of.s.k << " kind "
                     << static_cast<int>(kind));
  std::size_t unwritten = 0, over = 0;
  for (std::size_t i = 0; i < count; ++i) unwritten += std::isnan(got[i]);
  for (std::size_t i = count; i < got.size(); ++i) over += !std::isnan(got[i]);
  REQUIRE(unwritten == 0);
  REQUIRE(over == 0);
  const double unit = std::sqrt(static_cast<double>(of.s.k)) / 3;  // about the size of a sum
  // bf16 keeps 8 bits, f16 11; tensor cores cut a sum off once for each 16 columns.
  const double tolerance =
      narrow ? (of.type == dtype::f16 ? 0.00125 : 0.01) : std::ldexp(of.s.k / 16 + 16, -23);
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t row = i < 8 ? m - 1 : weir::tests::pick(r, 0, m - 1),
                        column = i < 8 ? n - 1 - i % n : weir::tests::pick(r, 0, n - 1);
    const std::size_t at = std::size_t{row} * n + column;
    const double wanted = of.wanted(kind, gate_for(m), row, column, before[at]);
    REQUIRE(std::abs(got[at] - wanted) <= tolerance * std::max(std::abs(wanted), unit));
  }
}

}  // namespace

TEST_CASE("cuda: products by our own kernels equal their definition") {
  device* d = the_device();
  if (!d) return;
  weir::tests::rng r(11);
  // Tiles shared by many blocks, by none, more blocks than work; ends within a tile and within a stage.
  constexpr shape shapes[] = {{6144, 2048}, {2048, 8192}, {8208, 1096}, {896, 4864}, {1040, 1096},
                              {20016, 256}, {64, 4096},   {16, 64},     {208, 8},    {8208, 4096}};
  for (std::size_t i = 0; i < 2 * std::size(shapes); ++i) {
    const dtype type = types[i % 2];
    const shape s = shapes[i / 2];
    const sample of(r, type, s, 128);
    const on_device w(*d, of.w), x(*d, of.x);
    for (const std::uint32_t m :
         {1u, 2u, 7u, 8u, 9u, 16u, 17u, 31u, 32u, 33u, 48u, 49u, 63u, 64u, 65u, 95u, 96u, 97u, 128u})
      for (const product_out kind : kinds) {
        const product p{type, w.get(), s.n, s.k, x.get(), m, nullptr, kind};
        if (!streams(*d, p)) continue;  // the device cannot, or m is too large to pay
        check(*d, r, of, w, x, m, kind, [&](const product& it) { stream(*d, it); });
        check(*d, r, of, w, x, m, kind,
              [&](const product& it) { stream(*d, it); });  // the first run left nothing behind
      }
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: logits of so many tiles that blocks claim them equal their definition, run after run") {
  device* d = the_device();
  if (!d) return;
  weir::tests::rng r(15);
  for (const dtype type : types) {
    const sample of(r, type, {70016, 512}, 8);
    const on_device w(*d, of.w), x(*d, of.x);
    for (const std::uint32_t m : {1u, 8u, 3u}) {
      const product p{type, w.get(), of.s.n, of.s.k, x.get(), m, nullptr, product_out::f32};
      if (streams(*d, p)) check(*d, r, of, w, x, m, p.kind, [&](const product& it) { stream(*d, it); });
    }
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: a norm in front of a product of one row is a part of it") {
  device* d = the_device();
  if (!d || d->path != code_path::hopper) return;
  weir::tests::rng r(16);
  const float eps = 1e-5f;
  // A row in front of its norm may have numbers that f16 cannot keep.
  const product row{dtype::f16, nullptr, 6144, 2048, nullptr, 1};
  CHECK(function_for(*d, row, true) == product_function::none);
  const dtype type = dtype::bf16;
  for (const shape s : {shape{6144, 2048}, {1040, 4096}, {8208, 256}, {70016, 512}, {64, 2304}}) {
    sample of(r, type, s, 1);
    const auto rows = random_floats(r, std::size_t{2} * s.k, 3), weight = random_floats(r, s.k);
    double squares = 0;
    for (std::uint32_t i = 0; i < s.k; ++i) {
      squares += double{rows[s.k + i]} * rows[s.k + i];
      of.x[i] = rounded(type, rows[s.k + i] * weight[i]);
    }
    of.factor = 1 / std::sqrt(squares / s.k + eps);
    const on_device w(*d, of.w), x(*d, of.x);
    const on_device there(*d, rows), weights(*d, weight);
    const on_device from(*d, std::vector<std::int32_t>{1});
    for (const product_out kind : {product_out::element, product_out::f32, product_out::gated})
      check(*d, r, of, w, x, 1, kind, [&](const product& it) {
        const product_function by = function_for(*d, it, true);
        REQUIRE(by != product_function::none);
        launch_product(*d, by, it, {there.get(), weights.get(), from.get(), eps});
      });
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: a chain of our own products has the sum of all of them") {
  device* d = the_device();
  if (!d) return;
  weir::tests::rng r(12);
  const shape s{8192, 1024};
  const sample of(r, dtype::bf16, s, 128);
  const on_device w(*d, of.w), x(*d, of.x);
  for (const std::uint32_t m : {1u, 16u, 33u, 64u, 96u, 128u}) {
    const std::vector<float> zeros(std::size_t{m} * s.n);
    const on_device out(*d, zeros), other(*d, zeros);
    product p{dtype::bf16, w.get(), s.n, s.k, x.get(), m, out.as<void>(), product_out::add_f32};
    product between = p;
    between.kind = product_out::element;
    between.out = other.as<void>();
    if (!streams(*d, p) || !streams(*d, between)) continue;
    for (int i = 0; i < 20; ++i) {
      stream(*d, p);
      stream(*d, between);
    }
    const auto got = out.back<float>();
    for (int i = 0; i < 200; ++i) {
      const std::uint32_t row = weir::tests::pick(r, 0, m - 1), column = weir::tests::pick(r, 0, s.n - 1);
      REQUIRE(got[std::size_t{row} * s.n + column] == Approx(20 * of.sum(row, column)).margin(5e-3));
    }
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: products by warpgroups equal their definition") {
  device* d = the_device();
  if (!d || !d->encode_map) return;  // not on the Hopper path
  weir::tests::rng r(16);
  // Tiles of each size, one after the other and fewer than blocks; K in one part and in several; ends within
  // a tile, a stage, a pair of slabs.
  using enum product_out;
  const struct {
    shape s;
    std::vector<product_out> kinds;
  } cases[] = {{{16384, 512}, {gated}},
               {{29568, 200}, {gated}},
               {{12672, 1096}, {gated}},
               {{25344, 64}, {gated, element}},
               {{1040, 1096}, {gated, element, add_f32}},
               {{16, 8}, {gated, element, add_f32}},
               {{6144, 520}, {element, add_f32}},
               {{4096, 1032}, {add_f32}},
               {{2056, 2048}, {element, add_f32}}};
  for (std::size_t i = 0; i < 2 * std::size(cases); ++i) {
    const dtype type = types[i % 2];
    const auto& [s, kinds] = cases[i / 2];
    const sample of(r, type, s, 700);
    const on_device w(*d, of.w), x(*d, of.x);
    for (const std::uint32_t m : {9u, 33u, 64u, 65u, 96u, 128u, 129u, 192u, 255u, 256u, 257u, 385u, 700u})
      for (const product_out kind : kinds)
        check(*d, r, of, w, x, m, kind, [&](const product& it) { wgmma_product(*d, it); });
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: products of more rows equal their definition") {
  device* d = the_device();
  if (!d) return;
  weir::tests::rng r(13);
  cuda::products all(*d);
  const shape s{1040, 1096}, odd{105, 128};  // the other one is a small vocabulary's
  const std::vector<float> zeros(std::size_t{128} * s.n);
  const on_device scratch(*d, zeros);
  for (const dtype type : types) {
    const sample of(r, type, s, 128);
    const on_device w(*d, of.w), x(*d, of.x);
    for (const std::uint32_t m : {65u, 100u, 128u})
      for (const product_out kind : {product_out::element, product_out::f32, product_out::add_f32})
        check(*d, r, of, w, x, m, kind, [&](const product& it) {
          multiply(*d, all, it, kind == product_out::add_f32 ? scratch.as<void>() : it.out);
        });
    const sample words(r, type, odd, 128);
    const on_device table(*d, words.w), few(*d, words.x);
    for (const std::uint32_t m : {1u, 3u, 64u, 100u})
      check(*d, r, words, table, few, m, product_out::f32, [&](const product& it) {
        REQUIRE_FALSE(streams(*d, it));
        multiply(*d, all, it, it.out);
      });
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: products by tiles equal their definition, also where blocks share a tile") {
  device* d = the_device();
  if (!d) return;
  weir::tests::rng r(14);
  // Tiles shared by many blocks, by none; ends within a tile, a stage, a pair of outputs.
  constexpr shape shapes[] = {{1040, 1096}, {105, 128}, {20016, 264}, {4096, 4096}, {8, 8}};
  for (std::size_t i = 0; i < 2 * std::size(shapes); ++i) {
    const dtype type = types[i % 2];
    const sample of(r, type, shapes[i / 2], 260);
    const on_device w(*d, of.w), x(*d, of.x);
    for (const std::uint32_t m : {1u, 16u, 63u, 64u, 65u, 128u, 200u, 260u})
      for (const product_out kind : {product_out::element, product_out::f32, product_out::add_f32})
        for (int again = 0; again < 2; ++again)  // the first run leaves nothing behind
          check(*d, r, of, w, x, m, kind, [&](const product& it) { tile_product(*d, it); });
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: by tiles, a row of a deterministic device has its bits whatever is beside it") {
  device* d = the_device(true);
  if (!d) return;
  weir::tests::rng r(15);
  const sample of(r, dtype::bf16, {1040, 4096}, 260);
  const on_device w(*d, of.w), x(*d, of.x);
  std::vector<float> alone;
  for (const std::uint32_t m : {64u, 1u, 65u, 260u}) {
    const on_device out(*d, std::vector<float>(std::size_t{m} * of.s.n));
    tile_product(*d, {of.type, w.get(), of.s.n, of.s.k, x.get(), m, out.as<void>(), product_out::f32});
    const auto got = out.back();
    if (alone.empty()) alone = got;
    const std::size_t same = std::min(got.size(), alone.size());
    CAPTURE(m);
    CHECK(std::memcmp(got.data(), alone.data(), same * sizeof(float)) == 0);
  }
  CHECK(d->fault == "");
}

// Gates are 76,800 in even columns and -76,800 in odd ones; the values that they gate are -76,800.
TEST_CASE("cuda: what f16 cannot hold becomes its largest number, and a NaN stays one") {
  device* d = the_device();
  if (!d) return;
  constexpr std::uint32_t inter = 64, k = 256, most = 260;
  std::vector<element> w(2 * inter * k), x(most * k);
  for (std::uint32_t i = 0; i < w.size(); ++i)
    w[i] = rounded(dtype::f16, i < inter * k && i / k % 2 == 0 ? 1.0f : -1.0f);
  for (element& e : x) e = rounded(dtype::f16, 300);
  x[3] = {0x7e00};  // the first row is NaN
  const on_device there(*d, w), rows(*d, x);
  cuda::products all(*d);
  for (const std::uint32_t m : {2u, 40u, 80u, most}) {
    const on_device both(*d, std::vector<element>(m * 2 * inter)), inner(*d, std::vector<element>(m * inter));
    const product p{dtype::f16, there.get(), 2 * inter,        k,
                    rows.get(), m,           inner.as<void>(), product_out::gated};
    if (streams(*d, p)) {
      stream(*d, p);
    } else if (d->encode_map) {
      wgmma_product(*d, p);
    } else {  // as a decoder does it
      const product halves{dtype::f16, p.w, p.n, k, p.x, m, both.as<void>(), product_out::element};
      multiply(*d, all, halves, both.as<void>());
      activate_rows(*d, dtype::f16, both.get(), nullptr, m, {inter}, inner.get());
    }
    const auto got = inner.back();
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < m * inter; ++i) {
      const float v = number(dtype::f16, got[i]);
      wrong += i < inter ? !std::isnan(v) : v != (i % 2 == 0 ? -65504.0f : 0.0f);
    }
    CAPTURE(m, streams(*d, p));
    CHECK(wrong == 0);
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: what our own products cannot do is left to others") {
  device* d = the_device();
  const device* exact = the_device(true);
  if (!d) return;
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  const product fits{dtype::f16, at(1 << 20), 1024, 1024, at(1 << 10), 64, nullptr, product_out::add_f32};
  CHECK(streams(*d, fits) == (d->encode_map != nullptr));
  product p = fits;
  for (const std::uint32_t m : {65u, 128u}) {
    p.m = m;
    CHECK(streams(*d, p) == (d->encode_map != nullptr));
  }
  p.m = 256;  // small weights
  CHECK_FALSE(streams(*d, p));
  p.n = 32768, p.m = 256;
  CHECK(streams(*d, p) == (d->encode_map != nullptr));
  for (const std::uint32_t m :
       {129u, 257u}) {  // much of every tile would be empty; the tensor cores bound it
    p.m = m;
    CHECK_FALSE(streams(*d, p));
  }
  p = fits, p.kind = product_out::element, p.m = 65;  // fewer tiles than multiprocessors
  CHECK_FALSE(streams(*d, p));
  p.m = 65, p.kind = product_out::f32;
  CHECK_FALSE(streams(*d, p));
  p = fits, p.n = 1032, p.kind = product_out::gated;
  CHECK_FALSE(streams(*d, p));
  p.n = 1040, p.m = 256;  // far fewer tiles than the device has clusters
  CHECK_FALSE(streams(*d, p));
  p.n = 1 << 20;
  CHECK(streams(*d, p) == (d->encode_map != nullptr));
  p.m = 129;  // nearly half of every tile would be empty
  CHECK_FALSE(streams(*d, p));
  p = fits, p.n = 1020;
  CHECK_FALSE(streams(*d, p));
  p = fits, p.k = 1020;
  CHECK_FALSE(streams(*d, p));
  p = fits, p.x = at((1 << 10) + 2);
  CHECK_FALSE(streams(*d, p));
  p = fits, p.type = dtype::f32;
  CHECK_FALSE(streams(*d, p));
  CHECK_FALSE(streams(*exact, fits));
  p = fits, p.m = 16;
  CHECK(streams(*d, p));
  p.m = 17;
  CHECK(streams(*d, p) == (d->path == code_path::hopper));
  p.m = 9, p.kind = product_out::element;
  CHECK(streams(*d, p) == (d->path == code_path::hopper || !d->lt));
}

}  // namespace weir::tests::cuda_products_test

#endif
