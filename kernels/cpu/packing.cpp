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

}  // namespace

void pack_panel(const matrix& m, std::size_t panel, std::byte* to) noexcept {
  const std::size_t first = panel * panel_rows, rows = std::min<std::size_t>(panel_rows, m.rows - first);
  const auto* from = static_cast<const std::byte*>(m.data) + first * m.cols * size_of(m.type);
  if (m.type == dtype::f32)
    return pack_columns(reinterpret_cast<const float*>(from), rows, m.cols, reinterpret_cast<float*>(to));
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  auto* out = reinterpret_cast<std::uint16_t*>(to);
  m.type == dtype::bf16 ? pack_tiles(halves, rows, m.cols, out) : pack_columns(halves, rows, m.cols, out);
}

void unpack_row(const matrix& m, std::size_t row, float* out) noexcept {
  const auto* panel =
      static_cast<const std::byte*>(m.data) + row / panel_rows * panel_bytes(m.type, m.cols);
  const std::size_t j = row % panel_rows;
  for (std::size_t i = 0; i < m.cols; ++i)
    out[i] = load(panel, m.type, m.type == dtype::bf16 ? place_in_tiles(i, j) : i * panel_rows + j);
}

}  // namespace weir::kernels
