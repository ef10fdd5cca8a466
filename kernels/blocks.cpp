#include "kernels/blocks.h"

#include <cmath>
#include <cstring>

#include "kernels/random_weights.h"

namespace weir::kernels {
namespace {

using u8 = std::uint8_t;

float half_at(const u8* at) noexcept { return from_f16(static_cast<std::uint16_t>(at[0] | at[1] << 8)); }

// Sixteen bytes with two codes each: weights 0 to 15 in the low halves, 16 to 31 in the high ones.
void read_halves(const u8* from, u8* codes) noexcept {
  for (int i = 0; i < 16; ++i) {
    codes[i] = from[i] & 15;
    codes[16 + i] = static_cast<u8>(from[i] >> 4);
  }
}

void one_group(float scale, float minimum, block_parts& to) noexcept {
  to.scale = scale;
  to.minimum = minimum;
  to.scales[0] = 1;
  to.minima[0] = 1;
}

// q4_0, q4_1, iq4_nl: d, with minima m, and the codes.
void read_4_bits(const u8* from, bool minima, block_parts& to) noexcept {
  one_group(half_at(from), minima ? half_at(from + 2) : 0.0f, to);
  read_halves(from + (minima ? 4 : 2), to.codes.data());
}

// q5_0, q5_1: the same with a word of fifth bits before the codes.
void read_5_bits(const u8* from, bool minima, block_parts& to) noexcept {
  one_group(half_at(from), minima ? half_at(from + 2) : 0.0f, to);
  const u8* fifth = from + (minima ? 4 : 2);
  read_halves(fifth + 4, to.codes.data());
  for (int j = 0; j < 32; ++j)
    to.codes[static_cast<std::size_t>(j)] |= static_cast<u8>((fifth[j / 8] >> (j % 8) & 1) << 4);
}

// q8_0: signed codes, which become unsigned ones.
void read_8_bits(const u8* from, block_parts& to) noexcept {
  one_group(half_at(from), 0, to);
  for (std::size_t j = 0; j < 32; ++j) to.codes[j] = static_cast<u8>(from[2 + j] + 128);
}

// 2^(e - 127); e = 0 is a subnormal f32.
void read_mxfp4(const u8* from, block_parts& to) noexcept {
  const std::uint32_t bits = from[0] == 0 ? 0x00400000u : std::uint32_t{from[0]} << 23;
  one_group(std::bit_cast<float>(bits), 0, to);
  read_halves(from + 1, to.codes.data());
}

// Two bits of weight `e` of a block of 256.
u8 two_bits(const u8* codes, std::size_t e) noexcept {
  return codes[e / 128 * 32 + e % 32] >> (2 * (e / 32 % 4)) & 3;
}

void read_q2_k(const u8* from, block_parts& to) noexcept {
  to.scale = half_at(from + 80);
  to.minimum = -half_at(from + 82);
  for (std::size_t i = 0; i < 16; ++i) {
    to.scales[i] = static_cast<std::int8_t>(from[i] & 15);
    to.minima[i] = static_cast<u8>(from[i] >> 4);
  }
  for (std::size_t e = 0; e < 256; ++e) to.codes[e] = two_bits(from + 16, e);
}

// A code is its two bits plus 4 where its bit of the mask is set: values -4 to 3.
void read_q3_k(const u8* from, block_parts& to) noexcept {
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
void read_six_bit_pairs(const u8* from, block_parts& to) noexcept {
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
u8 paired_groups(const u8* codes, std::size_t e) noexcept {
  return codes[e / 64 * 32 + e % 32] >> (4 * (e / 32 % 2)) & 15;
}

void read_q4_k(const u8* from, block_parts& to) noexcept {
  read_six_bit_pairs(from, to);
  for (std::size_t e = 0; e < 256; ++e) to.codes[e] = paired_groups(from + 16, e);
}

void read_q5_k(const u8* from, block_parts& to) noexcept {
  read_six_bit_pairs(from, to);
  const u8* fifth = from + 16;
  for (std::size_t e = 0; e < 256; ++e)
    to.codes[e] = static_cast<u8>(paired_groups(from + 48, e) | (fifth[e % 32] >> (e / 32) & 1) << 4);
}

void read_q6_k(const u8* from, block_parts& to) noexcept {
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

void read_iq4_xs(const u8* from, block_parts& to) noexcept {
  to.scale = half_at(from);
  const unsigned high = from[2] | from[3] << 8;
  for (std::size_t j = 0; j < 8; ++j) {
    const unsigned four = from[4 + j / 2] >> (4 * (j % 2)) & 15, two = high >> (2 * j) & 3;
    to.scales[j] = static_cast<std::int8_t>(static_cast<int>(four | two << 4) - 32);
    read_halves(from + 8 + 16 * j, to.codes.data() + 32 * j);
  }
}

// Where a block has its scales, and random scales that suit random codes.
struct random_scale {
  std::uint8_t at;
  std::uint16_t bits;
};
struct random_scales {
  random_scale scale, minimum;  // a minimum of no bits: there is none
};
constexpr std::uint16_t half_of_two_to(int exponent) {
  return static_cast<std::uint16_t>((15 + exponent) << 10);
}
constexpr random_scales scales_of(dtype type) {
  switch (type) {
    case dtype::q4_0:
      return {{0, half_of_two_to(-7)}, {}};
    case dtype::q4_1:
      return {{0, half_of_two_to(-7)}, {2, 0x8000u | half_of_two_to(-5) | 0x380u}};
    case dtype::q5_0:
      return {{0, half_of_two_to(-8)}, {}};
    case dtype::q5_1:
      return {{0, half_of_two_to(-8)}, {2, 0x8000u | half_of_two_to(-5) | 0x3c0u}};
    case dtype::q8_0:
    case dtype::iq4_nl:
      return {{0, half_of_two_to(-11)}, {}};
    case dtype::q2_k:
      return {{80, half_of_two_to(-8)}, {82, half_of_two_to(-8) | 0x200u}};
    case dtype::q3_k:
      return {{108, half_of_two_to(-10)}, {}};
    case dtype::q4_k:
      return {{0, half_of_two_to(-13)}, {2, half_of_two_to(-10)}};
    case dtype::q5_k:
      return {{0, half_of_two_to(-14)}, {2, half_of_two_to(-10)}};
    case dtype::q6_k:
      return {{208, 0x200}, {}};  // 2^-15, a subnormal
    case dtype::iq4_xs:
      return {{0, 0x200}, {}};
    default:
      return {};
  }
}

}  // namespace

void take_apart(dtype type, const std::byte* from, block_parts& to) noexcept {
  const auto* at = reinterpret_cast<const u8*>(from);
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
  }
}

void dequantise(dtype type, const void* from, std::uint64_t elements, float* to) noexcept {
  if (is_plain(type)) {
    for (std::uint64_t i = 0; i < elements; ++i) to[i] = load(from, type, i);
    return;
  }
  const block_format& f = format_of(type);
  const std::size_t weights = facts(type).block_weights;
  const auto* block = static_cast<const std::byte*>(from);
  block_parts parts;
  for (std::uint64_t at = 0; at < elements; at += weights, block += facts(type).block_bytes) {
    take_apart(type, block, parts);
    for (std::size_t i = 0; i < weights; ++i) {
      const std::size_t g = i / f.group;
      const float product = parts.scale * parts.scales[g] * f.value(parts.codes[i]);
      to[at + i] = f.minima ? product + parts.minimum * parts.minima[g] : product;
    }
  }
}

std::uint64_t first_not_finite(dtype type, const void* from, std::uint64_t blocks) noexcept {
  const auto* block = static_cast<const std::byte*>(from);
  block_parts parts;
  for (std::uint64_t i = 0; i < blocks; ++i, block += facts(type).block_bytes) {
    take_apart(type, block, parts);
    if (!std::isfinite(parts.scale) || !std::isfinite(parts.minimum)) return i;
  }
  return blocks;
}

void fill_random_blocks(void* to, dtype type, std::uint64_t elements, std::uint64_t seed) noexcept {
  constexpr std::uint8_t mxfp4_scale = 120;  // 2^-7
  const std::uint64_t bytes = bytes_of(type, elements);
  auto* at = static_cast<u8*>(to);
  for (std::uint64_t i = 0; i < bytes; ++i)
    at[i] = static_cast<u8>(mix_bits(seed + i / 8 * 0x9e3779b97f4a7c15u) >> (8 * (i % 8)));
  const random_scales s = scales_of(type);
  for (std::uint64_t b = 0; b < bytes; b += facts(type).block_bytes) {
    if (type == dtype::mxfp4) {
      at[b] = mxfp4_scale;
      continue;
    }
    std::memcpy(at + b + s.scale.at, &s.scale.bits, 2);
    if (s.minimum.bits) std::memcpy(at + b + s.minimum.at, &s.minimum.bits, 2);
  }
}

}  // namespace weir::kernels
