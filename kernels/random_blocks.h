// random_blocks.h — the bytes of random blocks: random codes, and scales that make weights of about 1/32. The
// host and a device make the same bytes from the same seed.
//
// The weights of a matrix have a mean of nearly 0, as those of trained models have. Otherwise all outputs of
// a product would share a term, the mean weight times the sum of x, that is larger than the rest. Where codes
// have another mean than 0, and a block has no minimum to make up for it, the sign of the scale is random. In
// int4 several blocks share a scale; all its codes are odd, so that their mean is the zero.
//
// Thread safety: pure functions; any thread, of the host or of a device.
#pragma once

#include "kernels/random_weights.h"
#include "kernels/tensor.h"

namespace weir::kernels {

// Bytes of a block that are not random: `bytes` bytes from `at` on.
struct fixed_bytes {
  std::uint8_t at = 0, bytes = 0;
  std::uint64_t bits = 0;
};
struct random_scales {
  fixed_bytes scale, minimum;
  std::uint8_t mask = 0xff;  // of all remaining bytes: the bits that are random
  std::uint8_t sign = 0xff;  // the byte of the scale whose highest bit, its sign, is random; 0xff: none
  std::uint8_t set = 0;      // of all remaining bytes: the bits that are 1
};

namespace block_values {
constexpr std::uint16_t half_of_two_to(int exponent) {
  return static_cast<std::uint16_t>((15 + exponent) << 10);
}
// A scale of 2^exponent as f32, and behind it a zero.
constexpr fixed_bytes wide(int exponent, std::uint64_t zero) {
  return {0, 8, static_cast<std::uint64_t>(127 + exponent) << 23 | zero << 32};
}
constexpr random_scales of_random_sign(fixed_bytes scale, std::uint8_t sign) {
  return {scale, {}, 0xff, sign, 0};
}
constexpr random_scales two(std::uint8_t at, int scale, std::uint8_t minimum_at, unsigned minimum) {
  return {{at, 2, half_of_two_to(scale)}, {minimum_at, 2, static_cast<std::uint16_t>(minimum)}};
}
}  // namespace block_values

// The places of the scales in a block of `type`, and their bits.
constexpr random_scales random_scales_of(dtype type) {
  using block_values::half_of_two_to, block_values::of_random_sign, block_values::two, block_values::wide;
  switch (type) {
    case dtype::q4_0:
      return of_random_sign({0, 2, half_of_two_to(-7)}, 1);
    case dtype::q4_1:
      return two(0, -7, 2, 0x8000u | half_of_two_to(-5) | 0x380u);
    case dtype::q5_0:
      return of_random_sign({0, 2, half_of_two_to(-8)}, 1);
    case dtype::q5_1:
      return two(0, -8, 2, 0x8000u | half_of_two_to(-5) | 0x3c0u);
    case dtype::q8_0:
    case dtype::iq4_nl:
      return of_random_sign({0, 2, half_of_two_to(-11)}, 1);
    case dtype::q2_k:
      return two(80, -8, 82, half_of_two_to(-8) | 0x200u);
    case dtype::q3_k:
      return of_random_sign({108, 2, half_of_two_to(-10)}, 109);
    case dtype::q4_k:
      return two(0, -13, 2, half_of_two_to(-10));
    case dtype::q5_k:
      return two(0, -14, 2, half_of_two_to(-10));
    case dtype::q6_k:
      return of_random_sign({208, 2, 0x200}, 209);  // 2^-15, a subnormal
    case dtype::iq4_xs:
      return of_random_sign({0, 2, 0x200}, 1);
    case dtype::mxfp4:
      return {{0, 1, 120}, {}};  // 2^-7
    case dtype::fp8:
      return {{0, 4, wide(-11, 0).bits}, {}, 0xf7};  // without the lowest bit of the exponent there is no NaN
    case dtype::int4:
      return {wide(-7, 8), {}, 0xff, 0xff, 0x11};
    case dtype::int4_32:
      return of_random_sign(wide(-7, 8), 3);
    case dtype::int8:
      return of_random_sign(wide(-11, 128), 3);
    default:
      return {};
  }
}

// Byte `i` of a piece of random blocks of `block_bytes` bytes each.
WEIR_ON_DEVICE constexpr std::uint8_t random_block_byte(const random_scales& s, std::uint32_t block_bytes,
                                                        std::uint64_t seed, std::uint64_t i) noexcept {
  const auto at = static_cast<std::uint32_t>(i % block_bytes);
  const auto random =
      static_cast<std::uint8_t>(mix_bits(seed + i / 8 * 0x9e3779b97f4a7c15u) >> (8 * (i % 8)));
  const std::uint8_t sign = at == s.sign ? random & 0x80 : 0;
  if (at - s.scale.at < s.scale.bytes)
    return static_cast<std::uint8_t>(s.scale.bits >> 8 * (at - s.scale.at)) ^ sign;
  if (at - s.minimum.at < s.minimum.bytes)
    return static_cast<std::uint8_t>(s.minimum.bits >> 8 * (at - s.minimum.at));
  return (random & s.mask) | s.set;
}

}  // namespace weir::kernels
