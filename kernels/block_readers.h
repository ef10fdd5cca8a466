// block_readers.h — how the bytes of each block format become its parts. take_apart() of blocks.h calls these
// functions. They are inline so that a device can take blocks apart by the same code.
//
// Thread safety: pure functions; any thread, of the host or of a device.
#pragma once

#include <cstring>

#include "kernels/blocks.h"
#include "kernels/random_weights.h"

namespace weir::kernels::block_readers {

using u8 = std::uint8_t;

WEIR_ON_DEVICE inline float half_at(const u8* at) noexcept {
  return from_f16(static_cast<std::uint16_t>(at[0] | at[1] << 8));
}

// Sixteen bytes with two codes each: weights 0 to 15 in the low halves, 16 to 31 in the high ones.
WEIR_ON_DEVICE inline void read_halves(const u8* from, u8* codes) noexcept {
  for (int i = 0; i < 16; ++i) {
    codes[i] = from[i] & 15;
    codes[16 + i] = static_cast<u8>(from[i] >> 4);
  }
}

WEIR_ON_DEVICE inline void one_group(float scale, float minimum, block_parts& to) noexcept {
  to.scale = scale;
  to.minimum = minimum;
  to.scales[0] = 1;
  to.minima[0] = 1;
}

// q4_0, q4_1, iq4_nl: the scale as f16, with `minima` the minimum as f16, and the codes.
WEIR_ON_DEVICE inline void read_4_bits(const u8* from, bool minima, block_parts& to) noexcept {
  one_group(half_at(from), minima ? half_at(from + 2) : 0.0f, to);
  read_halves(from + (minima ? 4 : 2), to.codes.data());
}

// q5_0, q5_1: the same with a word of fifth bits before the codes.
WEIR_ON_DEVICE inline void read_5_bits(const u8* from, bool minima, block_parts& to) noexcept {
  one_group(half_at(from), minima ? half_at(from + 2) : 0.0f, to);
  const u8* fifth = from + (minima ? 4 : 2);
  read_halves(fifth + 4, to.codes.data());
  for (int j = 0; j < 32; ++j)
    to.codes[static_cast<std::size_t>(j)] |= static_cast<u8>((fifth[j / 8] >> (j % 8) & 1) << 4);
}

// q8_0: signed codes, which become unsigned ones.
WEIR_ON_DEVICE inline void read_8_bits(const u8* from, block_parts& to) noexcept {
  one_group(half_at(from), 0, to);
  for (std::size_t j = 0; j < 32; ++j) to.codes[j] = static_cast<u8>(from[2 + j] + 128);
}

// mxfp4: the scale is 2^(e - 127), e being the first byte; e = 0 gives a subnormal f32.
WEIR_ON_DEVICE inline void read_mxfp4(const u8* from, block_parts& to) noexcept {
  const std::uint32_t bits = from[0] == 0 ? 0x00400000u : std::uint32_t{from[0]} << 23;
  one_group(std::bit_cast<float>(bits), 0, to);
  read_halves(from + 1, to.codes.data());
}

// Two bits of weight `e` of a block of 256.
WEIR_ON_DEVICE inline u8 two_bits(const u8* codes, std::size_t e) noexcept {
  return codes[e / 128 * 32 + e % 32] >> (2 * (e / 32 % 4)) & 3;
}

WEIR_ON_DEVICE inline void read_q2_k(const u8* from, block_parts& to) noexcept {
  to.scale = half_at(from + 80);
  to.minimum = -half_at(from + 82);
  for (std::size_t i = 0; i < 16; ++i) {
    to.scales[i] = static_cast<std::int8_t>(from[i] & 15);
    to.minima[i] = static_cast<u8>(from[i] >> 4);
  }
  for (std::size_t e = 0; e < 256; ++e) to.codes[e] = two_bits(from + 16, e);
}

// A code is its two bits plus 4 where its bit of the mask is set: values -4 to 3.
WEIR_ON_DEVICE inline void read_q3_k(const u8* from, block_parts& to) noexcept {
  const u8 *mask = from, *codes = from + 32, *fields = from + 96;
  to.scale = half_at(from + 108);
  for (std::size_t i = 0; i < 16; ++i) {
    const int low = i < 8 ? fields[i] & 15 : fields[i - 8] >> 4;
    const int high = fields[8 + i % 4] >> (2 * (i / 4)) & 3;
    to.scales[i] = static_cast<std::int8_t>((low | high << 4) - 32);
  }
  for (std::size_t e = 0; e < 256; ++e)
    to.codes[e] = static_cast<u8>(two_bits(codes, e) + 4 * (mask[e % 32] >> (e / 32) & 1));
}

// The scales and minima of q4_k and q5_k: eight of each, of six bits.
WEIR_ON_DEVICE inline void read_six_bit_pairs(const u8* from, block_parts& to) noexcept {
  to.scale = half_at(from);
  to.minimum = -half_at(from + 2);
  const u8* fields = from + 4;
  for (std::size_t j = 0; j < 4; ++j) {
    to.scales[j] = static_cast<std::int8_t>(fields[j] & 63);
    to.minima[j] = fields[j + 4] & 63;
    to.scales[j + 4] = static_cast<std::int8_t>((fields[j + 8] & 15) | (fields[j] >> 6) << 4);
    to.minima[j + 4] = static_cast<u8>(fields[j + 8] >> 4 | (fields[j + 4] >> 6) << 4);
  }
}

// The four low bits of weight `e`: pairs of groups of 32 share bytes.
WEIR_ON_DEVICE inline u8 paired_groups(const u8* codes, std::size_t e) noexcept {
  return codes[e / 64 * 32 + e % 32] >> (4 * (e / 32 % 2)) & 15;
}

WEIR_ON_DEVICE inline void read_q4_k(const u8* from, block_parts& to) noexcept {
  read_six_bit_pairs(from, to);
  for (std::size_t e = 0; e < 256; ++e) to.codes[e] = paired_groups(from + 16, e);
}

WEIR_ON_DEVICE inline void read_q5_k(const u8* from, block_parts& to) noexcept {
  read_six_bit_pairs(from, to);
  const u8* fifth = from + 16;
  for (std::size_t e = 0; e < 256; ++e)
    to.codes[e] = static_cast<u8>(paired_groups(from + 48, e) | (fifth[e % 32] >> (e / 32) & 1) << 4);
}

WEIR_ON_DEVICE inline void read_q6_k(const u8* from, block_parts& to) noexcept {
  const u8 *low = from, *high = from + 128;
  to.scale = half_at(from + 208);
  std::memcpy(to.scales.data(), from + 192, 16);
  for (std::size_t e = 0; e < 256; ++e) {
    const std::size_t h = e / 128, t = e / 32 % 4, l = e % 32;
    const int four = low[64 * h + 32 * (t % 2) + l] >> (4 * (t / 2)) & 15;
    const int two = high[32 * h + l] >> (2 * t) & 3;
    to.codes[e] = static_cast<u8>(four | two << 4);
  }
}

WEIR_ON_DEVICE inline void read_iq4_xs(const u8* from, block_parts& to) noexcept {
  to.scale = half_at(from);
  const unsigned high = from[2] | from[3] << 8;
  for (std::size_t j = 0; j < 8; ++j) {
    const unsigned four = from[4 + j / 2] >> (4 * (j % 2)) & 15, two = high >> (2 * j) & 3;
    to.scales[j] = static_cast<std::int8_t>(static_cast<int>(four | two << 4) - 32);
    read_halves(from + 8 + 16 * j, to.codes.data() + 32 * j);
  }
}

WEIR_ON_DEVICE inline float float_at(const u8* at) noexcept {
  return std::bit_cast<float>(std::uint32_t{at[0]} | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 |
                              std::uint32_t{at[3]} << 24);
}

// The types that only the loader makes (blocks.h).
WEIR_ON_DEVICE inline void read_fp8(const u8* from, block_parts& to) noexcept {
  one_group(float_at(from), 0, to);
  for (std::size_t j = 0; j < 32; ++j) to.codes[j] = from[4 + j];
}
WEIR_ON_DEVICE inline void read_int4(const u8* from, block_parts& to) noexcept {
  one_group(float_at(from), 0, to);
  to.zero = from[4];
  read_halves(from + 8, to.codes.data());
}
WEIR_ON_DEVICE inline void read_int8(const u8* from, block_parts& to) noexcept {
  one_group(float_at(from), 0, to);
  to.zero = static_cast<float>(from[4] - 128);  // less the offset, as the values of codes are
  for (std::size_t j = 0; j < 32; ++j) to.codes[j] = from[8 + j];
}

// take_apart() of blocks.h.
WEIR_ON_DEVICE inline void read_block(dtype type, const u8* at, block_parts& to) noexcept {
  switch (type) {
    case dtype::f32:
    case dtype::bf16:
    case dtype::f16:
      return;  // they have no blocks
    case dtype::q4_0:
    case dtype::iq4_nl:
      return read_4_bits(at, false, to);
    case dtype::q4_1:
      return read_4_bits(at, true, to);
    case dtype::q5_0:
      return read_5_bits(at, false, to);
    case dtype::q5_1:
      return read_5_bits(at, true, to);
    case dtype::q8_0:
      return read_8_bits(at, to);
    case dtype::q2_k:
      return read_q2_k(at, to);
    case dtype::q3_k:
      return read_q3_k(at, to);
    case dtype::q4_k:
      return read_q4_k(at, to);
    case dtype::q5_k:
      return read_q5_k(at, to);
    case dtype::q6_k:
      return read_q6_k(at, to);
    case dtype::iq4_xs:
      return read_iq4_xs(at, to);
    case dtype::mxfp4:
      return read_mxfp4(at, to);
    case dtype::fp8:
      return read_fp8(at, to);
    case dtype::int4:
    case dtype::int4_32:
      return read_int4(at, to);
    case dtype::int8:
      return read_int8(at, to);
  }
}

}  // namespace weir::kernels::block_readers
