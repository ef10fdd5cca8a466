#include "kernels/tensor.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace weir::tests::tensor_test {

using namespace weir::kernels;

TEST_CASE("every f16 pattern widens to the value that its bits define") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = (bits >> 10) & 31, mantissa = bits & 0x3ff;
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    const float got = from_f16(static_cast<std::uint16_t>(bits));
    if (exponent == 31 && mantissa != 0) {
      REQUIRE(std::isnan(got));
    } else if (exponent == 31) {
      REQUIRE(std::isinf(got));
    } else {
      REQUIRE(std::abs(got) == magnitude);
    }
    if (!std::isnan(got)) REQUIRE(std::signbit(got) == (bits >= 0x8000));
  }
}

TEST_CASE("f16 rounds to the nearest, ties to even, subnormals too, and keeps NaN and infinity") {
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = from_f16(static_cast<std::uint16_t>(bits));
    const float high = bits == 0x7bff ? 65536.0f : from_f16(static_cast<std::uint16_t>(bits + 1));
    const float half = (low + high) / 2;  // exact
    REQUIRE(to_f16(low) == bits);
    REQUIRE(to_f16(-low) == (bits | 0x8000));
    REQUIRE(to_f16(half) == bits + bits % 2);
    REQUIRE(to_f16(std::nextafter(half, 0.0f)) == bits);
    REQUIRE(to_f16(std::nextafter(half, 1e9f)) == bits + 1);
  }
  CHECK(to_f16(1e30f) == 0x7c00);
  CHECK(to_f16(-std::numeric_limits<float>::infinity()) == 0xfc00);
  CHECK(std::isnan(from_f16(to_f16(std::nanf("")))));
}

TEST_CASE("bf16 rounds to the nearest, ties to even, and keeps NaN and infinity") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = from_bf16(static_cast<std::uint16_t>(bits));
    if (!std::isnan(x)) REQUIRE(to_bf16(x) == bits);
  }
  CHECK(std::isnan(from_bf16(to_bf16(std::nanf("")))));
  CHECK(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(to_bf16(1.0f + 0x1p-8f) == to_bf16(1.0f));                // halfway: down to even
  CHECK(to_bf16(1.0f + 3 * 0x1p-8f) == to_bf16(1.0f + 0x1p-6f));  // halfway: up to even
  CHECK(to_bf16(1.0f + 0x1.8p-8f) == to_bf16(1.0f + 0x1p-7f));    // above half
  CHECK(std::isinf(from_bf16(to_bf16(3.4e38f))));
}

}  // namespace weir::tests::tensor_test
