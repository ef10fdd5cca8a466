// cell_writer.h — how codes and scales get into the cells of block_layout.h, for the kernels that pack.
//
// Thread safety: code of a device; each thread writes columns of its own.
#pragma once

#include <cstdint>

#include "kernels/cuda/products/block_codes.h"
#include "kernels/cuda/products/block_layout.h"

namespace weir::kernels::cuda {

// What the kernels need to know of a matrix in cells.
struct cells {
  unsigned char* at;
  std::uint32_t rows, cols, across;  // across: cells side by side
  explicit cells(const matrix& m)
      : at(static_cast<unsigned char*>(const_cast<void*>(m.data))),
        rows(m.rows),
        cols(m.cols),
        across(static_cast<std::uint32_t>(up(m.cols, cell_columns))) {}
  __device__ __forceinline__ unsigned char* cell(std::uint32_t row, std::uint32_t index,
                                                 std::uint32_t bytes) const {
    return at + (std::uint64_t{row / cell_rows} * across + index) * bytes;
  }
};

template <dtype type>
__device__ __forceinline__ std::uint16_t scale_bits(float x) {
  if constexpr (type == dtype::mxfp4) return static_cast<std::uint16_t>(__float_as_uint(x) >> 16);
  return __half_as_ushort(__float2half_rn(x));  // exact: x was an f16
}

// Writes 32 codes of row `r` of a cell: `code`, those of columns 32 * j to 32 * j + 31.
template <dtype type>
__device__ void put_codes(unsigned char* cell, std::uint32_t r, int j, const std::uint8_t* code) {
  constexpr cell_form form(type);
  for (std::uint32_t q = 0; q < 4; ++q) {
    std::uint32_t words[2] = {};
    for (int h = 0; h < 2; ++h)
      for (int e = 0; e < 4; ++e) {
        const std::uint32_t c = code[16 * h + 4 * q + e];
        if constexpr (form.code_bits == 4)
          words[0] |= c << 4 * code_at(h, e);
        else
          words[h] |= ((c - format_of(type).offset) & 255) << 8 * byte_at(e);
      }
    auto* to = reinterpret_cast<std::uint32_t*>(cell + (r * 4 + q) * 16);
    if constexpr (form.code_bits == 4) {
      to[j] = words[0];
    } else {
      to[j / 2 * 128 + j % 2 * 2] = words[0];
      to[j / 2 * 128 + j % 2 * 2 + 1] = words[1];
    }
  }
}

// Writes the scales of columns 32 * j to 32 * j + 31. `group` is the index of their first group in the block.
template <dtype type>
__device__ void put_scales(unsigned char* record, int j, int group, const block_parts& b) {
  constexpr block_format f = format_of(type);
  auto* halves = reinterpret_cast<std::uint16_t*>(record);
  if constexpr (f.wide_scales) {
    auto* floats = reinterpret_cast<float*>(record);
    if (f.shared) {
      floats[0] = b.scale;
      if (f.zeros) floats[1] = b.zero;
    } else {
      floats[j] = b.scale;
      if (f.zeros) record[16 + j] = static_cast<unsigned char>(static_cast<int>(b.zero) + f.offset);
    }
    return;
  }
  if constexpr (!f.scaled_groups) {
    halves[j] = scale_bits<type>(b.scale);
    if (f.minima) halves[4 + j] = scale_bits<type>(b.minimum);
    return;
  }
  if (j == 0) {
    halves[0] = scale_bits<type>(b.scale);
    halves[1] = f.minima ? scale_bits<type>(b.minimum) : 0;
  }
  constexpr int each = 32 / (f.group ? f.group : 32);
  for (int i = 0; i < each; ++i) {
    const int at = j * each + i;
    const auto s = static_cast<unsigned char>(b.scales[group + i]);
    record[4 + at] = type == dtype::q2_k ? static_cast<unsigned char>(s | b.minima[group + i] << 4) : s;
    if (f.minima && type != dtype::q2_k) record[8 + at] = b.minima[group + i];
  }
}

}  // namespace weir::kernels::cuda
