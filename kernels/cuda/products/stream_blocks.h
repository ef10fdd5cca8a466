// stream_blocks.h — products out = x · wᵀ with quantised weights: of few rows on every path, and of more on
// the Hopper path. Up to 128 rows the weights are read once.
//
// For up to 8 rows (stream_blocks.cu, stream_blocks_bulk.cu, stream_blocks_single.cu) the products use
// exactly the numbers that the blocks define: codes are multiplied as whole numbers, and scales and minima
// multiply the sums of each group in f32. For more rows (tile_blocks.cu, wide_blocks.cu) each weight is
// rounded to bf16 on its way to the tensor cores. x is rounded to bf16 in either case, as all rows of a
// decoder are.
//
// choose_product.h says which function a product has, and launch_product.h launches it.
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
  // The order of the columns of x, and of those of `out` where `kind` is gated. Only wide_blocks.cu takes
  // paired ones.
  column_order x_order = column_order::plain, out_order = column_order::plain;
  norm_before norm = {};  // in place of x; only stream_single() computes it
  // Whether x, or the row of the norm, has w.width() elements that are not in the order of w.inputs yet. Only
  // stream_single() puts them in order.
  bool gathers = false;
  activation gate = activation::silu;  // f, where `kind` is gated

  std::uint32_t stride() const noexcept {
    return out_stride ? out_stride : kind == product_out::gated ? w.rows / 2 : w.rows;
  }
};

// The functions, each in the file of its name. They launch kernels. REQUIRES: choose_product() chose the
// function for the product
void stream_blocks(device& d, const block_product& p);

// Up to 8 rows on the Hopper path; a single one. Where K is long, residual additions are atomic there, so
// that their last bits may differ between runs.
void stream_bulk(device& d, const block_product& p);
void stream_single(device& d, const block_product& p);

void tile_blocks(device& d, const block_product& p);

// It puts x in paired order itself where that is plain. Residual additions are atomic there, so that their
// last bits may differ between runs.
void wide_blocks(device& d, const block_product& p);

}  // namespace weir::kernels::cuda
