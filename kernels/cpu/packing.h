// packing.h — the layout of packed weight matrices of the cpu backend, which is the order in which a product
// reads them.
//
// Rows (the outputs of a product) are stored in panels of 32; zeros fill up the last one. Inside a panel:
//   f32, f16   [k][32]
//   bf16       [k / 32][2][16][16][2]: for each 32 of k (zero beyond the last) two tiles of 16 outputs; in a
//              tile pairs of k lie side by side, as the matrix unit and the 32-bit lanes of a vector need
//              them
//   quantised  for each section, which is a block of the file's type (blocks.h) in all 32 rows:
//              where groups have scales of their own, the blocks' scales and then their minima, f16 [32]
//              each; then for each group its scales [32], its minima [32] where the type has them, and its
//              codes. A group's scale is an i8 where its block has a scale, too. Otherwise it is an f16
//              (mxfp4: a bf16), or an f32; zeros, i8 [32], stand behind scales that are f32. Codes of 4 bits
//              are [group / 8][32] words of eight weights each, the first in the lowest bits. Codes of 5 to
//              8 bits are i8 [group][32], less their offset (code_order::columns); or they are
//              [group / 4][32] words of four weights each, the first in the lowest bits, which are i8 less
//              their offset where the offset is 128, and otherwise the codes themselves (code_order::words).
// A panel is one contiguous piece of memory, and panels follow one another.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/blocks.h"

namespace weir::kernels {

constexpr std::size_t panel_rows = 32;
constexpr std::size_t tile_k = 32;        // of k in one tile of bf16
constexpr std::size_t tile_bytes = 1024;  // 16 pairs of k, 16 outputs

// The order of codes of more than 4 bits. Both orders take the same bytes.
enum class code_order : std::uint8_t {
  columns,  // one k after the other, as products with f32 activations read them
  words,    // four k side by side, as products of whole numbers read them
};

// Whether words hold the code less its offset. Otherwise they hold the code itself, which is at most 63.
constexpr bool signed_in_words(const block_format& f) noexcept { return f.offset == 128; }

constexpr std::size_t panels_of(std::size_t rows) noexcept { return (rows + panel_rows - 1) / panel_rows; }

// The bytes of a group's scales and minima, or zeros, in a panel; then those of a block's.
constexpr std::size_t group_scale_bytes(const block_format& f) noexcept {
  if (f.wide_scales) return panel_rows * (f.zeros ? 5 : 4);
  return (f.minima ? 2 : 1) * panel_rows * (f.scaled_groups ? 1 : 2);
}
constexpr std::size_t section_scale_bytes(const block_format& f) noexcept {
  return f.scaled_groups ? (f.minima ? 2 : 1) * panel_rows * 2 : 0;
}
constexpr std::size_t group_bytes(const block_format& f) noexcept {
  return group_scale_bytes(f) + std::size_t{f.group} * panel_rows * f.code_bits / 8;
}
constexpr std::size_t section_bytes(dtype type) noexcept {
  const block_format& f = format_of(type);
  return section_scale_bytes(f) + facts(type).block_weights / f.group * group_bytes(f);
}

// Bytes of a panel up to element k; for bf16 k counts in whole tiles, for quantised types in whole blocks.
constexpr std::size_t panel_bytes(dtype type, std::size_t k) noexcept {
  if (!is_plain(type)) return k / facts(type).block_weights * section_bytes(type);
  return type == dtype::bf16 ? (k + tile_k - 1) / tile_k * 2 * tile_bytes : k * panel_rows * size_of(type);
}

constexpr std::uint64_t packed_bytes(dtype type, std::uint32_t rows, std::uint32_t cols) noexcept {
  return std::uint64_t{panels_of(rows)} * panel_bytes(type, cols);
}

// Packs panel `panel` of a row-major matrix to `to`, panel_bytes(m.type, m.cols) bytes.
void pack_panel(const matrix& m, std::size_t panel, std::byte* to,
                code_order order = code_order::columns) noexcept;

// out[0 .. cols) = row `row` of a packed matrix, widened. `order`: that with which it was packed.
void unpack_row(const matrix& m, std::size_t row, float* out,
                code_order order = code_order::columns) noexcept;

}  // namespace weir::kernels
