// Products of up to 8 rows with quantised weights. Cells go from memory straight into the registers of the
// warps that multiply them.
//
// A block computes a tile of 16 rows of the weights, which are two rows of cells; for gated one is of gate
// and the other of up. Its warps take cells of K one after another, and each loads its next cells while it
// multiplies the present ones. The loads of the first cells begin before the kernel waits for the kernel that
// computes x. At the end the block adds the warps' sums in shared memory. No other block adds to them, so the
// order in which a row is summed depends on K alone.
#include "kernels/cuda/products/stream_blocks.h"

#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/products/block_piece.h"
#include "kernels/cuda/products/put_output.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = 8, tile_rows = 16;

struct block_args {
  const unsigned char* w;
  const element* x;
  void* out;
  std::uint64_t across;  // bytes from one row of cells to the next
  // cells: in a row of cells. slabs: rows of cells. Tile t has the slabs t * step and t * step + other.
  std::uint32_t n, k, m, stride, cells, slabs, step, other;
  product_out kind;
  activation gate;
};

template <dtype type>
__global__ void __launch_bounds__(warps * 32, 2) blocks_kernel(const block_args a) {
  __shared__ float4 parts[warps][32];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t first = blockIdx.x * a.step;
  const unsigned char* const w[2] = {a.w + first * a.across,
                                     a.w + min(first + a.other, a.slabs - 1) * a.across};
  cell_piece<type> one, other;
  if (warp < a.cells) one.load_weights(w, warp, lane);
  if (warp + warps < a.cells) other.load_weights(w, warp + warps, lane);
  let_next_start();
  wait_for_previous();
  float sums[4] = {};
  if (warp < a.cells) one.load_x(a.x, a.k, a.m, warp, lane);
  const auto multiply = [&](cell_piece<type>& p, std::uint32_t at) {
    p.multiply(sums);
    if (at + 2 * warps < a.cells) p.load_weights(w, at + 2 * warps, lane);
  };
  for (std::uint32_t at = warp; at < a.cells; at += 2 * warps) {
    if (at + warps < a.cells) other.load_x(a.x, a.k, a.m, at + warps, lane);
    multiply(one, at);
    if (at + warps >= a.cells) break;
    if (at + 2 * warps < a.cells) one.load_x(a.x, a.k, a.m, at + 2 * warps, lane);
    multiply(other, at + warps);
  }
  parts[warp][lane] = make_float4(sums[0], sums[1], sums[2], sums[3]);
  __syncthreads();
  const product_outputs to{a.out, a.n, a.m, a.stride, a.kind, a.gate};
  put_tile<dtype::bf16, warps, 8>(to, reinterpret_cast<const float*>(parts));
}

}  // namespace

void stream_blocks(device& d, const block_product& p) {
  const bool halved = p.kind == product_out::gated;
  const auto cells = static_cast<std::uint32_t>(up(p.w.cols, cell_columns));
  block_args a{};
  a.w = static_cast<const unsigned char*>(p.w.data);
  a.x = p.x;
  a.out = p.out;
  a.across = std::uint64_t{cells} * cell_form(p.w.type).bytes;
  a.n = p.w.rows;
  a.k = p.w.cols;
  a.m = p.m;
  a.stride = p.stride();
  a.cells = cells;
  a.slabs = static_cast<std::uint32_t>(up(p.w.rows, cell_rows));
  a.step = halved ? 1 : 2;
  a.other = halved ? a.slabs / 2 : 1;
  a.kind = p.kind;
  a.gate = p.gate;
  const dim3 tiles(static_cast<unsigned>(up(p.w.rows, tile_rows)));
  with_block_type(p.w.type, [&](auto type) { launch(d, blocks_kernel<type>, tiles, warps * 32, 0, a); });
}

}  // namespace weir::kernels::cuda
