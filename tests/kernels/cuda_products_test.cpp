// Products on the device against their definition in double, over shapes that are whole tiles and shapes that
// are not; skipped, saying so, where there is no device.
#ifdef WEIR_WITH_CUDA
#include <cmath>
#include <cstring>

#include "kernels/cuda/device.h"
#include "kernels/cuda/products.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/random_data.h"

using namespace weir::kernels::cuda;
using weir::test::on_device;
using weir::test::random_floats;
using weir::test::the_device;

namespace {

constexpr product_out kinds[] = {product_out::bf16, product_out::f32, product_out::add_f32,
                                 product_out::silu_bf16};

std::vector<__nv_bfloat16> random_bf16(weir::test::rng& r, std::size_t count) {
  const auto v = random_floats(r, count);
  std::vector<__nv_bfloat16> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = __float2bfloat16(v[i]);
  return out;
}

struct shape {
  std::uint32_t n, k;
};

// x · wᵀ of random data for one shape and the most rows that are asked for.
struct sample {
  shape s;
  std::vector<__nv_bfloat16> w, x;
  sample(weir::test::rng& r, shape of, std::uint32_t rows)
      : s(of), w(random_bf16(r, std::size_t{of.n} * of.k)), x(random_bf16(r, std::size_t{rows} * of.k)) {}

  double sum(std::uint32_t row, std::uint32_t column) const {
    double v = 0;
    for (std::uint32_t i = 0; i < s.k; ++i)
      v += double{__bfloat162float(x[std::size_t{row} * s.k + i])} *
           __bfloat162float(w[std::size_t{column} * s.k + i]);
    return v;
  }
  double wanted(product_out kind, std::uint32_t row, std::uint32_t column, double before) const {
    if (kind != product_out::silu_bf16) return sum(row, column) + before;
    const double gate = sum(row, column), up = sum(row, column + s.n / 2);
    return gate / (1 + std::exp(-gate)) * up;
  }
};

// Runs it into poisoned memory with a margin behind, and looks at every element, at some of them closely.
template <class Run>
void check(device& d, weir::test::rng& r, const sample& of, const on_device<__nv_bfloat16>& w, const on_device<__nv_bfloat16>& x,
           std::uint32_t m, product_out kind, const Run& run) {
  const bool narrow = kind == product_out::bf16 || kind == product_out::silu_bf16;
  const std::uint32_t n = kind == product_out::silu_bf16 ? of.s.n / 2 : of.s.n;
  const std::size_t count = std::size_t{m} * n, margin = 64, size = narrow ? 2 : 4;
  std::vector<float> before(count);
  std::vector<std::byte> memory((count + margin) * size, std::byte{0xff});
  if (kind == product_out::add_f32) {
    before = random_floats(r, count);
    std::memcpy(memory.data(), before.data(), count * size);
  }
  const on_device<std::byte> out(d, memory);
  run(product{w.get(), of.s.n, of.s.k, x.get(), m, out.as<void>(), kind});
  std::vector<float> got(count + margin);
  if (narrow) {
    const auto v = out.back<__nv_bfloat16>();
    for (std::size_t i = 0; i < v.size(); ++i) got[i] = __bfloat162float(v[i]);
  } else {
    got = out.back<float>();
  }
  INFO("m " << m << " n " << of.s.n << " k " << of.s.k << " kind " << static_cast<int>(kind));
  std::size_t unwritten = 0, over = 0;
  for (std::size_t i = 0; i < count; ++i) unwritten += std::isnan(got[i]);
  for (std::size_t i = count; i < got.size(); ++i) over += !std::isnan(got[i]);
  REQUIRE(unwritten == 0);
  REQUIRE(over == 0);
  const double unit = std::sqrt(static_cast<double>(of.s.k)) / 3;  // about a sum's size
  // bf16 keeps 8 bits; tensor cores cut a sum off once for each 16 columns.
  const double tolerance = narrow ? 0.01 : std::ldexp(of.s.k / 16 + 16, -23);
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t row = i < 8 ? m - 1 : weir::test::pick(r, 0, m - 1),
                        column = i < 8 ? n - 1 - i % n : weir::test::pick(r, 0, n - 1);
    const std::size_t at = std::size_t{row} * n + column;
    const double wanted = of.wanted(kind, row, column, before[at]);
    REQUIRE(std::abs(got[at] - wanted) <= tolerance * std::max(std::abs(wanted), unit));
  }
}

}  // namespace

TEST_CASE("cuda: products of up to 64 rows by our own kernels equal their definition") {
  device* d = the_device();
  if (!d) return;
  weir::test::rng r(11);
  // Tiles shared by many blocks, by none, more blocks than work; ends within a tile and within a stage.
  for (const shape s : {shape{6144, 2048}, shape{2048, 8192}, shape{896, 4864}, shape{1040, 1096},
                        shape{20016, 256}, shape{64, 4096}, shape{16, 64}, shape{208, 8}}) {
    const sample of(r, s, 64);
    const on_device w(*d, of.w), x(*d, of.x);
    for (const std::uint32_t m : {1u, 2u, 7u, 8u, 9u, 16u, 17u, 31u, 32u, 33u, 48u, 49u, 63u, 64u})
      for (const product_out kind : kinds) {
        const product p{w.get(), s.n, s.k, x.get(), m, nullptr, kind};
        if (!can_stream(*d, p)) continue;  // a device without what they need
        check(*d, r, of, w, x, m, kind, [&](const product& it) { stream_product(*d, it); });
        check(*d, r, of, w, x, m, kind,
              [&](const product& it) { stream_product(*d, it); });  // nothing was left over
      }
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: a chain of our own products has the sum of all of them") {
  device* d = the_device();
  if (!d) return;
  weir::test::rng r(12);
  const shape s{4096, 1024};
  const sample of(r, s, 64);
  const on_device w(*d, of.w), x(*d, of.x);
  for (const std::uint32_t m : {1u, 16u, 33u, 64u}) {
    const std::vector<float> zeros(std::size_t{m} * s.n);
    const on_device out(*d, zeros), other(*d, zeros);
    product p{w.get(), s.n, s.k, x.get(), m, out.as<void>(),
              product_out::add_f32};
    product between = p;
    between.kind = product_out::bf16;
    between.out = other.as<void>();
    if (!can_stream(*d, p) || !can_stream(*d, between)) return;
    for (int i = 0; i < 20; ++i) {
      stream_product(*d, p);
      stream_product(*d, between);
    }
    const auto got = out.back<float>();
    for (int i = 0; i < 200; ++i) {
      const std::uint32_t row = weir::test::pick(r, 0, m - 1), column = weir::test::pick(r, 0, s.n - 1);
      REQUIRE(got[std::size_t{row} * s.n + column] == Approx(20 * of.sum(row, column)).margin(5e-3));
    }
  }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: products of more rows equal their definition") {
  device* d = the_device();
  if (!d) return;
  weir::test::rng r(13);
  products all(*d);
  const shape s{1040, 1096};
  const sample of(r, s, 128);
  const on_device w(*d, of.w), x(*d, of.x);
  const std::vector<float> zeros(std::size_t{128} * s.n);
  const on_device scratch(*d, zeros);
  for (const std::uint32_t m : {65u, 100u, 128u})
    for (const product_out kind : {product_out::bf16, product_out::f32, product_out::add_f32})
      check(*d, r, of, w, x, m, kind, [&](const product& it) {
        all.run(it, {}, kind == product_out::add_f32 ? scratch.as<void>() : it.out);
      });
  CHECK(d->fault == "");
}

TEST_CASE("cuda: what our own products cannot do is left to others") {
  device* d = the_device();
  if (!d) return;
  const product fits{reinterpret_cast<const __nv_bfloat16*>(1 << 20),
                     1024,
                     1024,
                     reinterpret_cast<const __nv_bfloat16*>(1 << 10),
                     64,
                     nullptr,
                     product_out::add_f32};
  CHECK(can_stream(*d, fits) == (d->encode_map != nullptr));
  product p = fits;
  p.m = 65;
  CHECK_FALSE(can_stream(*d, p));
  p = fits, p.n = 1020;
  CHECK_FALSE(can_stream(*d, p));
  p = fits, p.k = 1020;
  CHECK_FALSE(can_stream(*d, p));
  p = fits, p.x += 1;
  CHECK_FALSE(can_stream(*d, p));
  d->deterministic = true;
  CHECK_FALSE(can_stream(*d, fits));
  d->deterministic = false;
}
#endif
