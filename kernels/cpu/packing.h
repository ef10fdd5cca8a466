// packing.h — the layout of packed weight matrices of the cpu backend, which is the order in which a product
// reads them.
//
// Rows (the outputs of a product) go in panels of 32, zero where the matrix ends. Inside a panel:
//   f32, f16   [k][32]
//   bf16       [k / 32][2][16][16][2]: for each 32 of k (zero beyond the last) two tiles of 16 outputs; in a
//              tile pairs of k lie side by side, as the matrix unit and the 32-bit lanes of a vector need
//              them
// A panel is one contiguous piece of memory, and panels follow one another.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

namespace weir::kernels {

constexpr std::size_t panel_rows = 32;
constexpr std::size_t tile_k = 32;        // of k in one tile of bf16
constexpr std::size_t tile_bytes = 1024;  // 16 pairs of k, 16 outputs

constexpr std::size_t panels_of(std::size_t rows) noexcept { return (rows + panel_rows - 1) / panel_rows; }

// Bytes of a panel up to element k; for bf16 k counts in whole tiles.
constexpr std::size_t panel_bytes(dtype type, std::size_t k) noexcept {
  return type == dtype::bf16 ? (k + tile_k - 1) / tile_k * 2 * tile_bytes : k * panel_rows * size_of(type);
}

constexpr std::uint64_t packed_bytes(dtype type, std::uint32_t rows, std::uint32_t cols) noexcept {
  return std::uint64_t{panels_of(rows)} * panel_bytes(type, cols);
}

// Packs panel `panel` of a row-major matrix to `to`, panel_bytes(m.type, m.cols) bytes.
void pack_panel(const matrix& m, std::size_t panel, std::byte* to) noexcept;

// out[0 .. cols) = row `row` of a packed matrix, widened.
void unpack_row(const matrix& m, std::size_t row, float* out) noexcept;

}  // namespace weir::kernels
