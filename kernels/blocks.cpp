#include "kernels/blocks.h"

#include <cmath>

#include "kernels/block_readers.h"
#include "kernels/random_blocks.h"

namespace weir::kernels {

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
  const auto* block = static_cast<const std::byte*>(from);
  block_parts parts;
  for (std::uint64_t i = 0; i < blocks; ++i, block += facts(type).block_bytes) {
    take_apart(type, block, parts);
    if (!std::isfinite(parts.scale) || !std::isfinite(parts.minimum)) return i;
  }
  return blocks;
}

void fill_random_blocks(void* to, dtype type, std::uint64_t elements, std::uint64_t seed) noexcept {
  const random_scales scales = random_scales_of(type);
  const std::uint64_t bytes = bytes_of(type, elements);
  auto* at = static_cast<std::uint8_t*>(to);
  for (std::uint64_t i = 0; i < bytes; ++i)
    at[i] = random_block_byte(scales, facts(type).block_bytes, seed, i);
}

}  // namespace weir::kernels
