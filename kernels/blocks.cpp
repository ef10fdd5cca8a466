#include "kernels/blocks.h"

#include "kernels/block_readers.h"
#include "kernels/random_blocks.h"

namespace weir::kernels {
namespace {

// Where a block has its scale and its minimum, where both are f16; without a minimum, the scale twice.
struct half_places {
  std::size_t scale, minimum;
};
half_places halves_of(dtype type) noexcept {
  switch (type) {
    case dtype::q4_1:
    case dtype::q5_1:
    case dtype::q4_k:
    case dtype::q5_k:
      return {0, 2};
    case dtype::q2_k:
      return {80, 82};
    case dtype::q3_k:
      return {108, 108};
    case dtype::q6_k:
      return {208, 208};
    default:
      return {0, 0};
  }
}

}  // namespace

void take_apart(dtype type, const std::byte* from, block_parts& to) noexcept {
  block_readers::read_block(type, reinterpret_cast<const std::uint8_t*>(from), to);
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
    const float zero = f.zeros ? parts.zero : 0;
    for (std::size_t i = 0; i < weights; ++i) {
      const std::size_t g = i / f.group;
      const float product = parts.scale * parts.scales[g] * (f.value(parts.codes[i]) - zero);
      to[at + i] = f.minima ? product + parts.minimum * parts.minima[g] : product;
    }
  }
}

std::uint64_t first_not_finite(dtype type, const void* from, std::uint64_t blocks) noexcept {
  const auto* all = static_cast<const std::uint8_t*>(from);
  const std::size_t step = facts(type).block_bytes;
  const auto first = [&](const auto& bad) {
    std::uint64_t i = 0;
    while (i < blocks && !bad(all + i * step)) ++i;
    return i;
  };
  // The exponent of a float that is not finite has all bits set.
  if (type == dtype::mxfp4) return first([](const std::uint8_t* at) { return at[0] == 0xff; });
  if (format_of(type).wide_scales)
    return first([](const std::uint8_t* at) { return (at[3] & 0x7f) == 0x7f && at[2] >= 0x80; });
  const auto [scale, minimum] = halves_of(type);
  return first([=](const std::uint8_t* at) {
    return (at[scale + 1] & 0x7c) == 0x7c || (at[minimum + 1] & 0x7c) == 0x7c;
  });
}

void fill_random_blocks(void* to, dtype type, std::uint64_t elements, std::uint64_t seed) noexcept {
  const random_scales scales = random_scales_of(type);
  const std::uint64_t bytes = bytes_of(type, elements);
  auto* at = static_cast<std::uint8_t*>(to);
  for (std::uint64_t i = 0; i < bytes; ++i)
    at[i] = random_block_byte(scales, facts(type).block_bytes, seed, i);
}

}  // namespace weir::kernels
