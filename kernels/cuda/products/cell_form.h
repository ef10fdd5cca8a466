// cell_form.h — the sizes of the cells in which a device stores quantised weights (block_layout.h). Plain
// C++.
#pragma once

#include <cstdint>

#include "kernels/blocks.h"

namespace weir::kernels::cuda {

constexpr std::uint32_t cell_rows = 8, cell_columns = 128;

// The cells of a type. This is the table of layouts: it follows from block_formats.
struct cell_form {
  std::uint32_t code_bits, words, code_bytes, bytes;  // words: of a row's record; bytes: of a cell

  constexpr explicit cell_form(dtype type)
      : code_bits(format_of(type).code_bits),
        words(words_of(type)),
        code_bytes(cell_rows * cell_columns * code_bits / 8),
        bytes(code_bytes + cell_rows * words * 4) {}

 private:
  static constexpr std::uint32_t words_of(dtype type) {
    const block_format& f = format_of(type);
    const std::uint32_t groups = cell_columns / f.group;
    if (f.wide_scales) return (f.shared ? 1 : groups) + (f.zeros ? 1 : 0);
    if (!f.scaled_groups) return groups / 2 * (f.minima ? 2 : 1);
    return 1 + groups / 4 * (f.minima && type != dtype::q2_k ? 2 : 1);
  }
};

constexpr std::uint64_t up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit; }

// The bytes of a matrix: what backend::weight_bytes says. REQUIRES: !is_plain(type)
constexpr std::uint64_t block_bytes(dtype type, std::uint32_t rows, std::uint32_t cols) {
  return up(rows, cell_rows) * up(cols, cell_columns) * cell_form(type).bytes;
}

}  // namespace weir::kernels::cuda
