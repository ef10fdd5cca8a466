// bulk_division.h — how the blocks and warps of stream_blocks_bulk.cu and stream_blocks_single.cu divide a
// product (stream_blocks_ring.h), and so which products they can compute. Plain C++.
#pragma once

#include "kernels/cuda/products/cell_form.h"
#include "kernels/cuda/products/choose_product.h"

namespace weir::kernels::cuda {

// The sizes of a block.
struct bulk_block {
  static constexpr int warps = 16, tile_rows = 16;
  static constexpr std::uint32_t longest_run = 3, most_stages = 8;  // cells of a warp's run; stages of a ring
  static constexpr std::uint32_t ring_bytes = 13056;                // of a warp
  static constexpr std::size_t sums = 4096;                         // floats, behind the rings
  static constexpr std::uint32_t most_gathered = 2 * sums;          // elements of a row in their place
  static constexpr std::size_t shared_bytes = warps * ring_bytes + sums * sizeof(float);
};
static_assert(bulk_block::shared_bytes <= (226u << 10) && bulk_block::ring_bytes % 128 == 0);

struct bulk_division {
  // The number of blocks that share K: with add_f32 a warp's run has at most two cells; other kinds do not
  // share.
  std::uint32_t parts;
  std::uint32_t run;     // the most cells of a warp's run
  std::uint32_t stages;  // how many tiles' runs fit into a warp's ring
};

// The division of a product with `k` columns of quantised weights.
constexpr bulk_division divide_bulk(dtype type, std::uint32_t k, product_out kind) {
  const auto cells = static_cast<std::uint32_t>(up(k, cell_columns));
  constexpr std::uint32_t warps = bulk_block::warps;
  const std::uint32_t parts = kind == product_out::add_f32 ? (cells + 2 * warps - 1) / (2 * warps) : 1;
  const auto run = static_cast<std::uint32_t>(up(up(cells, parts), warps));
  return {parts, run, bulk_block::ring_bytes / (2 * run * cell_form(type).bytes)};
}

}  // namespace weir::kernels::cuda
