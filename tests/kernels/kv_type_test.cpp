// What is stored of keys and values, in every type.
#include <catch2/catch.hpp>

#include "kernels/reference/kv_values.h"
#include "tests/kernels/random_data.h"
#include "tests/kernels/stored_numbers.h"

namespace weir::tests::kv_type_test {

using namespace weir::kernels;

TEST_CASE("a row takes the bytes of its numbers, and in q8 of a scale for each group") {
  CHECK(kv_row_bytes(kv_type::f32, 128) == 512);
  CHECK(kv_row_bytes(kv_type::bf16, 128) == 256);
  CHECK(kv_row_bytes(kv_type::fp8, 128) == 128);
  CHECK(kv_row_bytes(kv_type::q8, 128) == 128 + 4 * 2);
  CHECK(kv_row_bytes(kv_type::q8, 80) == 80 + 5 * 2);  // groups of 16
  CHECK(kv_group(8) == 8);
  CHECK(kv_group(58) == 2);
  CHECK(kv_group(96) == 32);
}

TEST_CASE("rounding to e4m3 takes the nearest, of two the even one, and never leaves the range") {
  for (int i = 0; i < 256; ++i) {
    const auto bits = static_cast<std::uint8_t>(i);
    if ((bits & 0x7f) == 0x7f) continue;
    REQUIRE(to_e4m3(static_cast<float>(tests::e4m3_value(bits))) == bits);
  }
  tests::rng r(1);
  for (int i = 0; i < 20000; ++i) {
    const float x =
        std::ldexp(1 + static_cast<float>(pick(r, 0, 255)) / 256, static_cast<int>(pick(r, 0, 22)) - 12);
    double nearest = INFINITY;
    int wanted = 0;
    for (int code = 0; code < 0x7f; ++code) {
      const double off = std::abs(tests::e4m3_value(static_cast<std::uint8_t>(code)) - x);
      if (off > nearest || (off == nearest && code % 2)) continue;
      nearest = off;
      wanted = code;
    }
    REQUIRE(to_e4m3(x) == wanted);
    REQUIRE(to_e4m3(-x) == (wanted | 0x80));
  }
  CHECK(to_e4m3(1e30f) == 0x7e);
  CHECK(to_e4m3(-INFINITY) == 0xfe);
  CHECK((to_e4m3(NAN) & 0x7f) == 0x7f);
}

TEST_CASE("what is stored is the nearest number of the type, and what is read is what is stored") {
  tests::rng r(2);
  constexpr std::uint32_t tokens = 16;
  for (std::size_t type = 0; type < kv_type_count; ++type)
    for (const std::uint32_t head_dim : {8u, 24u, 58u, 80u, 128u}) {
      kv_pages kv{nullptr, nullptr, 1, head_dim, tokens, static_cast<kv_type>(type)};
      std::vector<std::byte> memory(tokens * kv_row_bytes(kv.type, head_dim), std::byte{0xff});
      const kv_head head{memory.data(), kv.type, head_dim, tokens};
      const auto x = tests::random_floats(r, std::size_t{tokens} * head_dim, 3);
      for (std::size_t t = 0; t < tokens; ++t) store_kv(head, t, x.data() + t * head_dim);
      CAPTURE(name(kv.type), head_dim);
      for (std::size_t t = 0; t < tokens; ++t) {
        const auto raw = tests::raw_numbers(memory.data(), kv, t),
                   whole = tests::stored_numbers(memory.data(), kv, t);
        for (std::size_t g = 0; g < head_dim; g += kv_group(head_dim)) {
          const kv_numbers read = load_kv(head, t, g);
          REQUIRE(read.count == kv_group(head_dim));
          std::vector<double> wanted(x.begin() + static_cast<std::ptrdiff_t>(t * head_dim + g),
                                     x.begin() + static_cast<std::ptrdiff_t>(t * head_dim + g + read.count));
          if (kv.type == kv_type::q8) wanted = tests::turned(wanted);
          double largest = 0;
          for (const double w : wanted) largest = std::max(largest, std::abs(w));
          for (std::size_t i = 0; i < read.count; ++i) {
            const double w = std::abs(wanted[i]), off = std::abs(raw[g + i] - wanted[i]);
            REQUIRE(std::abs(read.x[i] - whole[g + i]) <= 1e-12 * largest);
            if (kv.type == kv_type::f32) REQUIRE(off == 0);
            if (kv.type == kv_type::bf16) REQUIRE(off <= w * 0x1p-8);
            if (kv.type == kv_type::fp8) REQUIRE(off <= std::max(w * 0x1p-4, 0x1p-10));
            // Half a step, and the error of the scale in f16, which is largest for the largest code.
            if (kv.type == kv_type::q8) REQUIRE(off <= largest / 127 * (0.5 + 127 * 0x1p-11));
          }
        }
      }
    }
}

TEST_CASE("a NaN stays one in every type, and an outlier costs q8 no more than its group") {
  for (std::size_t type = 0; type < kv_type_count; ++type) {
    std::vector<float> x(64, 0.25f);
    x[3] = NAN;
    std::vector<std::byte> memory(16 * kv_row_bytes(static_cast<kv_type>(type), 64));
    const kv_head head{memory.data(), static_cast<kv_type>(type), 64, 16};
    store_kv(head, 5, x.data());
    CHECK(std::isnan(load_kv(head, 5, 0).x[3]));
    CHECK(load_kv(head, 5, 32).x[7] == Approx(0.25).epsilon(0.01));
    x[3] = INFINITY;
    store_kv(head, 6, x.data());
    CHECK((static_cast<kv_type>(type) == kv_type::fp8 ? load_kv(head, 6, 0).x[3] == 448
                                                      : !std::isfinite(load_kv(head, 6, 0).x[3])));
    CHECK(load_kv(head, 6, 32).x[7] == Approx(0.25).epsilon(0.01));
  }
}

}  // namespace weir::tests::kv_type_test
