// Quantised weights: what blocks mean, and products with them on every path of the cpu backend. Golden values
// of every format are compared in tests/core/model/load/gguf_golden_test.cpp.
#include "kernels/blocks.h"

#include <cmath>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "kernels/buffer.h"
#include "kernels/cpu/backend.h"
#include "kernels/cpu/packing.h"
#include "kernels/cpu/self_test.h"
#include "tests/kernels/host_blocks.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::blocks_test {

using namespace weir::kernels;

namespace {

void for_block_types(const std::function<void(dtype)>& f) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<dtype>(i);
    if (is_plain(type)) continue;
    CAPTURE(name(type));
    f(type);
  }
}

// Random blocks, some with a scale of zero and some with all codes at one end.
struct blocks_matrix : tests::random_blocks {
  blocks_matrix(tests::rng& r, dtype type, std::uint32_t rows, std::uint32_t cols)
      : random_blocks(r, type, rows, cols) {
    tests::make_some_extreme(r, type, rows, cols, memory.data());
  }
};

using packed_blocks = tests::host_packed_blocks;

void on_every_path(const std::function<void(const backend_ptr&, const backend_ptr&)>& check) {
  for (const simd_kernels* simd : simd_choices()) {
    const auto one = make_cpu_backend(1, *simd, true), three = make_cpu_backend(3, *simd, true);
    CAPTURE(one->name);
    check(one, three);
  }
}

}  // namespace

TEST_CASE("a block of q8_0 is a scale and 32 signed codes") {
  std::array<std::byte, 34> b{};
  b[1] = std::byte{0xc0};  // -2
  b[2] = std::byte{127};
  b[3] = std::byte{0x80};
  b[33] = std::byte{0xff};
  float w[32];
  dequantise(dtype::q8_0, b.data(), 32, w);
  CHECK(w[0] == -254);
  CHECK(w[1] == 256);
  CHECK(w[2] == 0);
  CHECK(std::signbit(w[2]));
  CHECK(w[31] == 2);
}

TEST_CASE("a block of q4_1 has its weights 0 to 15 in low halves, 16 to 31 in high ones, above a minimum") {
  std::array<std::byte, 20> b{};
  b[1] = std::byte{0x3c};  // 1
  b[3] = std::byte{0xbc};  // -1
  b[4] = std::byte{0x21};
  b[19] = std::byte{0xf0};
  float w[32];
  dequantise(dtype::q4_1, b.data(), 32, w);
  CHECK(w[0] == 0);
  CHECK(w[16] == 1);
  CHECK(w[15] == -1);
  CHECK(w[31] == 14);
}

TEST_CASE("a block of mxfp4 has a power of two, at its smallest a subnormal") {
  std::array<std::byte, 17> b{};
  b[1] = std::byte{0x82};  // codes 2 and 8: 1 and -0
  float w[32];
  dequantise(dtype::mxfp4, b.data(), 32, w);
  CHECK(w[0] == 0x1p-127f);
  CHECK(w[16] == 0);
  CHECK(std::signbit(w[16]));
  b[0] = std::byte{255};
  CHECK(first_not_finite(dtype::mxfp4, b.data(), 1) == 0);
  b[0] = std::byte{254};
  CHECK(first_not_finite(dtype::mxfp4, b.data(), 1) == 1);
}

TEST_CASE("a block of int4 has an f32 scale and a zero, below which codes are negative") {
  std::array<std::byte, 24> b{};
  b[2] = std::byte{0x80};
  b[3] = std::byte{0x3e};  // 1/4
  b[4] = std::byte{3};
  b[8] = std::byte{0x2f};
  float w[32];
  for (const dtype type : {dtype::int4, dtype::int4_32}) {
    dequantise(type, b.data(), 32, w);
    CHECK(w[0] == 3);
    CHECK(w[16] == -0.25f);
    CHECK(w[31] == -0.75f);
  }
}

TEST_CASE("a block of int8 counts its codes from its zero") {
  std::array<std::byte, 40> b{};
  b[3] = std::byte{0x40};  // 2
  b[4] = std::byte{200};
  b[8] = std::byte{255};
  float w[32];
  dequantise(dtype::int8, b.data(), 32, w);
  CHECK(w[0] == 110);
  CHECK(w[1] == -400);
}

TEST_CASE("the codes of fp8 are the 254 numbers of e4m3") {
  for (unsigned code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    const unsigned exponent = code >> 3 & 15, mantissa = code & 7;
    const double size =
        exponent ? std::ldexp(8 + mantissa, static_cast<int>(exponent) - 10) : std::ldexp(mantissa, -9);
    CHECK(from_e4m3(static_cast<std::uint8_t>(code)) == (code & 0x80 ? -size : size));
    CHECK(std::signbit(from_e4m3(static_cast<std::uint8_t>(code))) == (code >= 0x80));
  }
}

TEST_CASE("a scale or minimum that is not finite is found, in every quantised type and at every place") {
  for_block_types([](dtype type) {
    const std::size_t bytes = facts(type).block_bytes;
    std::vector<std::byte> some(5 * bytes);
    fill_random_blocks(some.data(), type, 5u * facts(type).block_weights, 3);
    CHECK(first_not_finite(type, some.data(), 5) == 5);
    std::size_t found = 0;
    for (std::size_t at = 0; at + 1 < bytes; ++at)
      for (const unsigned two : {0x7c01u, 0xfc00u, 0x7bffu, 0x7f80u, 0xffc0u, 0x00ffu}) {
        auto bad = some;
        bad[3 * bytes + at] = static_cast<std::byte>(two);
        bad[3 * bytes + at + 1] = static_cast<std::byte>(two >> 8);
        block_parts parts;
        take_apart(type, bad.data() + 3 * bytes, parts);
        const bool finite = std::isfinite(parts.scale) && std::isfinite(parts.minimum);
        CAPTURE(at, two);
        CHECK(first_not_finite(type, bad.data(), 5) == (finite ? 5u : 3u));
        found += !finite;
      }
    CHECK(found > 0);
  });
}

TEST_CASE("random blocks have weights of about one size in every quantised type") {
  for_block_types([](dtype type) {
    std::vector<std::byte> some(bytes_of(type, 256 * 64));
    std::vector<float> w(256 * 64);
    fill_random_blocks(some.data(), type, w.size(), 9);
    dequantise(type, some.data(), w.size(), w.data());
    double squares = 0;
    for (const float x : w) squares += double{x} * x;
    const double size = std::sqrt(squares / static_cast<double>(w.size()));
    CHECK(size > 0.01);
    CHECK(size < 0.1);
  });
}

TEST_CASE("products with quantised weights equal the reference, packed and as rows, on every path") {
  tests::rng r(11);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for_block_types([&](dtype type) {
      for (int round = 0; round < 3; ++round) {
        const std::uint32_t rows = pick(r, 1, 40), n = pick(r, 1, 150);
        const std::uint32_t k = facts(type).block_weights * pick(r, 1, type == dtype::q8_0 ? 70 : 5);
        const blocks_matrix w(r, type, n, k);
        const auto x = random_floats(r, std::size_t{rows} * k), some = random_floats(r, n);
        const float* bias = pick(r, 0, 1) ? some.data() : nullptr;
        CAPTURE(rows, n, k, bias != nullptr);
        const auto wanted = product_of(*reference_backend(), w.view, bias, x.data(), rows);
        const packed_blocks packed(one, w.view);
        const auto got = product_of(*one, packed.view, bias, x.data(), rows);
        CHECK(tests::worst_difference(wanted, got) <= 3e-5);
        CHECK(product_of(*three, packed.view, bias, x.data(), rows) == got);
        CHECK(product_of(*three, w.view, bias, x.data(), rows) == got);
      }
    });
  });
}

TEST_CASE("weights with inputs of their own multiply each row of x in that order, on every path") {
  tests::rng r(15);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for_block_types([&](dtype type) {
      for (const std::uint32_t rows : {1u, 3u, 13u, 70u}) {
        const std::uint32_t n = pick(r, 1, 150), k = facts(type).block_weights * pick(r, 1, 9);
        const std::uint32_t width = pick(r, 1, k);  // fewer inputs than columns: some are there twice
        const blocks_matrix w(r, type, n, k);
        const auto x = random_floats(r, std::size_t{rows} * width);
        std::vector<std::uint32_t> inputs(k);
        for (auto& i : inputs) i = pick(r, 0, width - 1);
        std::vector<float> in_order;
        for (std::uint32_t i = 0; i < rows; ++i)
          for (const std::uint32_t from : inputs) in_order.push_back(x[std::size_t{i} * width + from]);
        CAPTURE(rows, n, k, width);
        const packed_blocks packed(one, w.view);
        for (const auto& b : {reference_backend(), one, three})
          for (matrix m : {w.view, packed.view}) {
            if (b == reference_backend() && m.order == layout::packed) continue;
            const auto wanted = product_of(*b, m, nullptr, in_order.data(), rows);
            m.input_count = width;
            m.inputs = inputs.data();
            CHECK(product_of(*b, m, nullptr, x.data(), rows) == wanted);
          }
      }
    });
  });
}

TEST_CASE("a row times quantised weights has the same bits alone and in any company") {
  tests::rng r(12);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for_block_types([&](dtype type) {
      const std::uint32_t n = 70, k = 1024 + facts(type).block_weights;
      const blocks_matrix w(r, type, n, k);
      const packed_blocks packed(one, w.view);
      const auto x = random_floats(r, 130 * k);
      const auto most = product_of(*one, packed.view, nullptr, x.data(), 130);
      const auto row = [&](std::size_t i) { return most.begin() + static_cast<std::ptrdiff_t>(i * n); };
      for (const std::uint32_t rows : {1u, 2u, 3u, 5u, 7u, 8u, 9u, 64u}) {
        const std::size_t first = pick(r, 0, 130 - rows);
        CAPTURE(rows, first);
        for (const auto& b : {one, three})
          CHECK(product_of(*b, packed.view, nullptr, x.data() + first * k, rows) ==
                std::vector<float>(row(first), row(first + rows)));
      }
    });
  });
}

TEST_CASE("gather reads quantised rows bit for bit, packed and as rows") {
  tests::rng r(13);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for_block_types([&](dtype type) {
      const std::uint32_t n = 77, k = 512;
      const blocks_matrix table(r, type, n, k);
      std::vector<float> all(n * k);
      dequantise(type, table.memory.data(), all.size(), all.data());
      const packed_blocks packed(one, table.view);
      std::vector<std::int32_t> ids(100);
      std::vector<float> wanted;
      for (auto& id : ids) {
        id = static_cast<std::int32_t>(pick(r, 0, n - 1));
        wanted.insert(wanted.end(), all.begin() + id * std::ptrdiff_t{k},
                      all.begin() + (id + 1) * std::ptrdiff_t{k});
      }
      for (const auto& b : {reference_backend(), one, three})
        for (const matrix& m : {table.view, packed.view}) {
          if (b == reference_backend() && m.order == layout::packed) continue;
          auto got = poison(wanted.size());
          b->run(gather{m, ids, got.data()});
          CHECK(bits_of(got) == bits_of(wanted));
          b->run(gather{m, ids, got.data(), 0.75f});
          auto scaled = wanted;
          for (float& x : scaled) x *= 0.75f;
          CHECK(bits_of(got) == bits_of(scaled));
        }
    });
  });
}

TEST_CASE("products of several matrices side by side write their own columns alone") {
  tests::rng r(14);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    const std::uint32_t rows = 11, k = 512, widths[] = {64, 45};
    const blocks_matrix a(r, dtype::q4_k, widths[0], k), b(r, dtype::q6_k, widths[1], k);
    const auto x = random_floats(r, rows * k), bias = random_floats(r, widths[1]);
    for (const auto& on : {reference_backend(), one, three}) {
      const std::uint32_t both = widths[0] + widths[1];
      auto out = poison(rows * both);
      on->run(linear{a.view, nullptr, x.data(), out.data(), rows, both});
      const auto first = product_of(*on, a.view, nullptr, x.data(), rows);
      for (std::uint32_t i = 0; i < rows; ++i) {
        CHECK(std::equal(first.begin() + i * widths[0], first.begin() + (i + 1) * widths[0],
                         out.begin() + i * both));
        CHECK(std::isnan(out[i * both + widths[0]]));
      }
      on->run(linear{b.view, bias.data(), x.data(), out.data() + widths[0], rows, both});
      const auto second = product_of(*on, b.view, bias.data(), x.data(), rows);
      for (std::uint32_t i = 0; i < rows; ++i)
        CHECK(std::equal(second.begin() + i * widths[1], second.begin() + (i + 1) * widths[1],
                         out.begin() + i * both + widths[0]));
    }
  });
}

TEST_CASE("the self-test covers quantised products") {
  static const simd_kernels& good = *simd_choices().front();
  static product_path sloppy = *good.blocks;
  sloppy.multiply = [](const product_tile& t) {
    good.blocks->multiply(t);
    if (t.rows == 3) t.to[2 * t.to_stride] = std::nextafter(t.to[2 * t.to_stride], 1e9f);
  };
  CHECK(is_exact(*good.blocks, dtype::q4_k));
  CHECK(!is_exact(sloppy, dtype::q4_k));
  simd_kernels broken = good;
  broken.name = "broken";
  broken.blocks = &sloppy;
  const simd_kernels* both[] = {&broken, &good};
  CHECK(choose_paths(both, nullptr).simd == &good);
}

}  // namespace weir::tests::blocks_test
