// stream_blocks.h — products out = x · wᵀ with quantised weights: of few rows on every path, and of more on
// the Hopper path. Up to 128 rows the weights are read once.
//
// For up to 8 rows (stream_blocks.cu, stream_blocks_bulk.cu, stream_blocks_single.cu) the products use
// exactly the numbers that the blocks define: codes are multiplied as whole numbers, and scales and minima
// multiply the sums of each group in f32. For more rows (tile_blocks.cu, wide_blocks.cu) each weight is
// rounded to bf16 on its way to the tensor cores. x is rounded to bf16 in either case, as all rows of a
// decoder are.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/products/norm_before.h"
#include "kernels/cuda/products/products.h"

namespace weir::kernels::cuda {

// A product of x [m, k] and w [n, k]; `kind` says what becomes of it, as in `product`. It moves the bytes of
// w, m * k elements of x, and the outputs.
struct block_product {
  matrix w;          // in cells (block_layout.h)
  const element* x;  // bf16, [m, k]
  std::uint32_t m = 0;
  void* out = nullptr;
  product_out kind = product_out::element;
  std::uint32_t out_stride = 0;  // elements from one row of `out` to the next; 0: as many as a row has
  // The order of the columns of x, and of those of `out` where `kind` is silu. Only wide_blocks.cu takes
  // paired ones.
  column_order x_order = column_order::plain, out_order = column_order::plain;
  norm_before norm = {};  // in place of x, where can_stream_normed()
  // Whether x, or the row of the norm, has w.width() elements that are not in the order of w.inputs yet.
  bool gathers = false;

  std::uint32_t stride() const noexcept {
    return out_stride ? out_stride : kind == product_out::silu ? w.rows / 2 : w.rows;
  }
};

// Whether stream_blocks() supports a product. Not on a deterministic device, where a row's bits must not
// depend on the number of rows.
bool can_stream_blocks(const device& d, const block_product& p);

// Whether stream_blocks() takes the kernel of wide_blocks.cu, for which x is best put in paired order by the
// kernel that writes it.
bool takes_wide_blocks(const device& d, const block_product& p);

// Whether stream_blocks() puts x in the order of w.inputs itself: of one row on the Hopper path.
bool can_gather(const device& d, const block_product& p);

// Launches the product. REQUIRES: can_stream_blocks(); takes_wide_blocks() where an order is paired;
// can_gather() where `gathers`
void stream_blocks(device& d, const block_product& p);

// Whether stream_blocks() computes a norm in front of the product: of one row on the Hopper path. Where
// p.gathers, no column may be padding, since each element of the row must be read once.
bool can_stream_normed(const device& d, const block_product& p);

// can_stream_blocks() and stream_blocks() for the kernels of stream_blocks_bulk.cu and
// stream_blocks_single.cu alone: up to 8 rows on the Hopper path. Where K is long, residual additions are
// atomic there, so that their last bits may differ between runs.
bool can_stream_bulk(const device& d, const block_product& p);
void stream_bulk(device& d, const block_product& p);

// The same for the kernels of tile_blocks.cu alone, which take few rows, too.
constexpr std::uint32_t most_tiled_rows = 64;
bool can_tile_blocks(const device& d, const block_product& p);
void tile_blocks(device& d, const block_product& p);

// The same for the kernel of wide_blocks.cu alone: on the Hopper path, any number of rows up to the largest
// one. It puts x in paired order itself where that is plain. Residual additions are atomic there, so that
// their last bits may differ between runs.
constexpr std::uint32_t most_wide_block_rows = 4096;
bool can_wide_blocks(const device& d, const block_product& p);
void wide_blocks(device& d, const block_product& p);

}  // namespace weir::kernels::cuda
