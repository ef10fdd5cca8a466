#include "kernels/cpu/packing.h"

#include <algorithm>
#include <cstring>

namespace weir::kernels {
namespace {

// Packs a panel as [k][32]. It does a few k at a time, so that what is written stays in the L1 cache.
template <class T>
void pack_columns(const T* from, std::size_t rows, std::size_t cols, T* to) noexcept {
  constexpr std::size_t step = 32;
  for (std::size_t at = 0; at < cols; at += step) {
    const std::size_t end = std::min(at + step, cols);
    for (std::size_t j = 0; j < panel_rows; ++j)
      for (std::size_t i = at; i < end; ++i) to[i * panel_rows + j] = j < rows ? from[j * cols + i] : T{};
  }
}

// The index of element i of a panel's row j in the tiles of bf16.
constexpr std::size_t place_in_tiles(std::size_t i, std::size_t j) noexcept {
  constexpr std::size_t elements = tile_bytes / 2;
  return (i / tile_k * 2 + j / 16) * elements + i % tile_k / 2 * 32 + j % 16 * 2 + i % 2;
}

void pack_tiles(const std::uint16_t* from, std::size_t rows, std::size_t cols, std::uint16_t* to) noexcept {
  for (std::size_t at = 0; at < cols; at += tile_k)
    for (std::size_t j = 0; j < panel_rows; ++j)
      for (std::size_t i = at; i < at + tile_k; ++i)
        to[place_in_tiles(i, j)] = j < rows && i < cols ? from[j * cols + i] : std::uint16_t{0};
}

// A float that is an f16, as f16: the reverse of from_f16.
std::uint16_t exact_f16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto rest = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits & 0x7fffffffu) * 0x1p-112f);
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | rest >> 13);
}

// A block's scale in 16 bits, for types whose groups have no scales of their own. The powers of two of mxfp4
// are no f16, but they are bf16.
std::uint16_t scale_bits(dtype type, float x) noexcept {
  return type == dtype::mxfp4 ? static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16)
                              : exact_f16(x);
}
float scale_of_bits(dtype type, std::uint16_t bits) noexcept {
  return type == dtype::mxfp4 ? from_bf16(bits) : from_f16(bits);
}

void put(std::byte* at, std::size_t index, std::uint16_t bits) noexcept {
  std::memcpy(at + 2 * index, &bits, 2);
}
std::uint16_t half_at(const std::byte* at, std::size_t index) noexcept {
  std::uint16_t bits;
  std::memcpy(&bits, at + 2 * index, 2);
  return bits;
}

// The byte of weight `e` of a group in row `j`, for codes of more than 4 bits.
constexpr std::size_t place_of_byte(std::size_t e, std::size_t j, code_order order) noexcept {
  return order == code_order::words ? (e / 4 * panel_rows + j) * 4 + e % 4 : e * panel_rows + j;
}
// The number that is subtracted from such a code when it is packed.
constexpr int packed_offset(const block_format& f, code_order order) noexcept {
  return order == code_order::words && !signed_in_words(f) ? 0 : f.offset;
}

// Packs row `j` of one section at `to`, which is all zeros before its first row.
void pack_block(dtype type, const block_parts& b, std::size_t j, std::byte* to, code_order order) noexcept {
  const block_format& f = format_of(type);
  const int offset = packed_offset(f, order);
  if (f.scaled_groups) {
    put(to, j, exact_f16(b.scale));
    if (f.minima) put(to, panel_rows + j, exact_f16(b.minimum));
    to += section_scale_bytes(f);
  }
  for (std::size_t i = 0, g = 0; i < facts(type).block_weights; i += f.group, ++g) {
    if (f.scaled_groups) {
      to[j] = static_cast<std::byte>(b.scales[g]);
      if (f.minima) to[panel_rows + j] = static_cast<std::byte>(b.minima[g]);
    } else if (f.wide_scales) {
      std::memcpy(to + 4 * j, &b.scale, 4);
      if (f.zeros) to[4 * panel_rows + j] = static_cast<std::byte>(static_cast<int>(b.zero));
    } else {
      put(to, j, scale_bits(type, b.scale));
      if (f.minima) put(to, panel_rows + j, exact_f16(b.minimum));
    }
    std::byte* codes = to + group_scale_bytes(f);
    for (std::size_t e = 0; e < f.group; ++e) {
      const std::uint8_t code = b.codes[i + e];
      if (f.code_bits == 8)
        codes[place_of_byte(e, j, order)] = static_cast<std::byte>(code - offset);
      else
        codes[(e / 8 * panel_rows + j) * 4 + e % 8 / 2] |= static_cast<std::byte>(code << (4 * (e % 2)));
    }
    to += group_bytes(f);
  }
}

void pack_sections(const matrix& m, std::size_t first, std::size_t rows, std::byte* to,
                   code_order order) noexcept {
  const std::size_t sections = m.cols / facts(m.type).block_weights, bytes = section_bytes(m.type);
  const std::size_t block = facts(m.type).block_bytes;
  const auto* from = static_cast<const std::byte*>(m.data) + first * sections * block;
  std::memset(to, 0, sections * bytes);
  block_parts parts;
  for (std::size_t s = 0; s < sections; ++s, to += bytes)
    for (std::size_t j = 0; j < rows; ++j) {
      take_apart(m.type, from + (j * sections + s) * block, parts);
      pack_block(m.type, parts, j, to, order);
    }
}

// The reverse of pack_block(), widened.
void unpack_block(dtype type, const std::byte* from, std::size_t j, float* out, code_order order) noexcept {
  const block_format& f = format_of(type);
  const int more = f.offset - packed_offset(f, order);
  float scale = 0, minimum = 0;
  if (f.scaled_groups) {
    scale = from_f16(half_at(from, j));
    if (f.minima) minimum = from_f16(half_at(from, panel_rows + j));
    from += section_scale_bytes(f);
  }
  for (std::size_t i = 0; i < facts(type).block_weights; i += f.group, from += group_bytes(f)) {
    float s, m = 0, zero = 0;
    if (f.scaled_groups) {
      s = scale * static_cast<float>(static_cast<std::int8_t>(from[j]));
      if (f.minima) m = minimum * static_cast<float>(static_cast<std::uint8_t>(from[panel_rows + j]));
    } else if (f.wide_scales) {
      std::memcpy(&s, from + 4 * j, 4);
      if (f.zeros) zero = static_cast<std::int8_t>(from[4 * panel_rows + j]);
    } else {
      s = scale_of_bits(type, half_at(from, j));
      if (f.minima) m = from_f16(half_at(from, panel_rows + j));
    }
    const std::byte* codes = from + group_scale_bytes(f);
    for (std::size_t e = 0; e < f.group; ++e) {
      const auto wide = static_cast<unsigned>(codes[(e / 8 * panel_rows + j) * 4 + e % 8 / 2]);
      float value = f.values[wide >> (4 * (e % 2)) & 15];
      if (f.code_bits == 8) {
        const auto byte = static_cast<std::uint8_t>(codes[place_of_byte(e, j, order)]);
        value = f.e4m3 ? from_e4m3(byte) : static_cast<float>(static_cast<std::int8_t>(byte) - more);
      }
      if (f.zeros) value -= zero;
      out[i + e] = f.minima ? s * value + m : s * value;
    }
  }
}

}  // namespace

void pack_panel(const matrix& m, std::size_t panel, std::byte* to, code_order order) noexcept {
  const std::size_t first = panel * panel_rows, rows = std::min<std::size_t>(panel_rows, m.rows - first);
  if (!is_plain(m.type)) return pack_sections(m, first, rows, to, order);
  const auto* from = static_cast<const std::byte*>(m.data) + first * m.cols * size_of(m.type);
  if (m.type == dtype::f32)
    return pack_columns(reinterpret_cast<const float*>(from), rows, m.cols, reinterpret_cast<float*>(to));
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  auto* out = reinterpret_cast<std::uint16_t*>(to);
  m.type == dtype::bf16 ? pack_tiles(halves, rows, m.cols, out) : pack_columns(halves, rows, m.cols, out);
}

void unpack_row(const matrix& m, std::size_t row, float* out, code_order order) noexcept {
  const auto* panel = static_cast<const std::byte*>(m.data) + row / panel_rows * panel_bytes(m.type, m.cols);
  const std::size_t j = row % panel_rows, section = facts(m.type).block_weights;
  if (!is_plain(m.type)) {
    for (std::size_t i = 0; i < m.cols; i += section, panel += section_bytes(m.type))
      unpack_block(m.type, panel, j, out + i, order);
    return;
  }
  for (std::size_t i = 0; i < m.cols; ++i)
    out[i] = load(panel, m.type, m.type == dtype::bf16 ? place_in_tiles(i, j) : i * panel_rows + j);
}

}  // namespace weir::kernels
