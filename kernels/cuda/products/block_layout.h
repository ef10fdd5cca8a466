// block_layout.h — quantised weights in memory of a device: their layout, how they get there, and how they
// come back as numbers.
//
// A matrix is stored in cells of 8 rows by 128 columns: all cells of 8 rows, then those of the next 8. Rows
// and columns that the matrix does not have are zeros. A cell has the codes of its weights, and behind them a
// record of scales for each of its rows. The layout is made for products by mma() (mma.h), in which a lane
// reads what it multiplies with loads of 16 bytes. Lane 4 * r + q of a warp multiplies weights of row r: of
// each 32 columns, columns 4 * q to 4 * q + 3 of both halves.
//
//   codes of 4 bits   [32 lanes] 16 bytes; word j has the lane's eight codes of columns 32 * j on
//   codes of 8 bits   [2][32 lanes] 16 bytes; words 2 * j % 4 and the next have those of columns 32 * j on,
//                     the first word those of the first half. A code is a signed byte: code - offset of
//                     blocks.h.
//   records           [8 rows] `words` words: scales of 16 bits, then minima of 16 bits. Where groups have
//                     scales of their own: the block's scale and minimum (f16), then a byte for each group's
//                     scale and another for its minimum; in q2_k both are in one byte. Where scales are f32:
//                     one for all columns where these share it, and then the zero as an f32; otherwise four,
//                     and then a byte for each zero, plus the offset.
//
// In a word, codes that are multiplied as one pair of elements are 16 bits apart (code_at). Codes of 5 and 6
// bits take 8, those of 2 and 3 bits take 4.
//
// The functions launch kernels on the device's stream; a failure is kept in device::fault.
//
// Thread safety: the device's (device.h).
#pragma once

#include <cstdint>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/products/cell_form.h"

namespace weir::kernels::cuda {

struct rows_view;

// The offset in bytes of the cell that holds row `row` and columns 128 * `cell` on.
inline std::uint64_t cell_at(const matrix& m, std::uint32_t row, std::uint32_t cell) {
  return (row / cell_rows * up(m.cols, cell_columns) + cell) * cell_form(m.type).bytes;
}

// Converts `rows`, which are blocks as in files but in memory of the device, to rows [first, first +
// rows.rows) of `to`. Writes no other row, and no column of padding.
void pack_blocks(device& d, const matrix& rows, const matrix& to, std::uint32_t first);

// Writes rows [first, first + count) of `from` to `to` [count, from.cols]: rounded to bf16, or as f32.
// REQUIRES: first % 8 == 0
void unpack_blocks(device& d, const matrix& from, std::uint32_t first, std::uint32_t count, element* to);
void unpack_blocks(device& d, const matrix& from, std::uint32_t first, std::uint32_t count, float* to);

// out[i, :] = table[ids[i], :] * factor, as f32. `ids` [count] is in memory of the device.
void gather_blocks(device& d, const matrix& table, const std::int32_t* ids, std::uint32_t count, float* out,
                   float factor);

// embed() of layers.h for a quantised table.
void embed_blocks(device& d, const rows_view& v, const matrix& table, float* x, float factor, float* cleared);

// The operation `linear` (ops.h) for quantised weights, by one simple kernel. The bits of a row depend on
// that row alone.
void linear_blocks(device& d, const linear& op);

// The entries backend::do_pack, do_begin_pack and do_fill_random for quantised matrices.
void upload_blocks(device& d, const matrix& to, std::uint32_t first, const matrix& rows_on_host);
void fill_random_blocks(device& d, const matrix& to, std::uint32_t first, std::uint32_t rows,
                        std::uint64_t seed);

// Calls f with a quantised type as a std::integral_constant.
template <class F>
void with_block_type(dtype type, const F& f) {
  switch (type) {
#define WEIR_BLOCK_TYPE(name) \
  case dtype::name:           \
    return f(std::integral_constant<dtype, dtype::name>{});
    WEIR_BLOCK_TYPE(q4_0)
    WEIR_BLOCK_TYPE(q4_1)
    WEIR_BLOCK_TYPE(q5_0)
    WEIR_BLOCK_TYPE(q5_1)
    WEIR_BLOCK_TYPE(q8_0)
    WEIR_BLOCK_TYPE(q2_k)
    WEIR_BLOCK_TYPE(q3_k)
    WEIR_BLOCK_TYPE(q4_k)
    WEIR_BLOCK_TYPE(q5_k)
    WEIR_BLOCK_TYPE(q6_k)
    WEIR_BLOCK_TYPE(iq4_nl)
    WEIR_BLOCK_TYPE(iq4_xs)
    WEIR_BLOCK_TYPE(mxfp4)
    WEIR_BLOCK_TYPE(fp8)
    WEIR_BLOCK_TYPE(int4)
    WEIR_BLOCK_TYPE(int4_32)
    WEIR_BLOCK_TYPE(int8)
#undef WEIR_BLOCK_TYPE
    default:
      return;  // a plain type
  }
}

}  // namespace weir::kernels::cuda
