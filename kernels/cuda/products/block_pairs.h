// block_pairs.h — the scales of two neighbouring groups of a row, from the row's record in a cell
// (block_layout.h). For the product of a single row, in which a lane has the sums of two groups.
#pragma once

#include "kernels/cuda/products/block_codes.h"

namespace weir::kernels::cuda {

// Groups 2 * pair and 2 * pair + 1 of the cell's 128 columns. A weight is scale * (number - zero) + least.
template <dtype type>
struct pair_scales {
  float scale[2], zero[2] = {}, least[2] = {};

  // `record` is in shared memory.
  __device__ __forceinline__ pair_scales(const unsigned char* record, std::uint32_t pair) {
    using row = cell_row<type>;
    constexpr block_format f = row::format;
    const auto* words = reinterpret_cast<const std::uint32_t*>(record);
    const int first = static_cast<int>(pair) * 2;
    if constexpr (f.shared) {
      scale[0] = scale[1] = __uint_as_float(words[0]);
      if constexpr (f.zeros) zero[0] = zero[1] = __uint_as_float(words[1]);
    } else if constexpr (f.wide_scales) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        scale[i] = __uint_as_float(words[first + i]);
        if constexpr (f.zeros) zero[i] = row::byte_of(words[4], first + i, f.offset);
      }
    } else if constexpr (!f.scaled_groups) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        scale[i] = (type == dtype::mxfp4 ? 0.5f : 1.0f) * row::half_of(words[pair], i);
        if constexpr (f.minima) least[i] = row::half_of(words[2 + pair], i);
      }
    } else {
      constexpr bool is_signed = type == dtype::q3_k || type == dtype::q6_k || type == dtype::iq4_xs;
      const float whole = row::half_of(words[0], 0), lowest = f.minima ? row::half_of(words[0], 1) : 0;
      const std::uint32_t both = words[1 + first / 4];
      const std::uint32_t own = type == dtype::q2_k ? both & 0x0f0f0f0f
                                : is_signed         ? both ^ 0x80808080
                                                    : both;
      [[maybe_unused]] const std::uint32_t minima =
          type == dtype::q2_k ? both >> 4 & 0x0f0f0f0f : f.minima ? words[2] : 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        scale[i] = whole * row::byte_of(own, first % 4 + i, is_signed ? 128 : 0);
        if constexpr (f.minima) least[i] = lowest * row::byte_of(minima, first % 4 + i);
      }
    }
  }
};

}  // namespace weir::kernels::cuda
