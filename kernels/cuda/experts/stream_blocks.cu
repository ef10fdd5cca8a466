// Products of few slots with quantised weights. Each slot has blocks of its own: a block computes one tile of
// 16 rows of the slot's expert, as in products/stream_blocks.cu, with exactly the numbers that the blocks
// define.
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/experts/put_expert.h"
#include "kernels/cuda/products/block_piece.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t warps = 8;

template <dtype type>
__global__ void __launch_bounds__(warps * 32, 2) expert_kernel(const expert_args a) {
  __shared__ float4 parts[warps][32];
  if (!a.ids_settled) wait_for_previous();
  const auto slot = static_cast<std::int32_t>(blockIdx.y);
  const std::int32_t expert = __ldcg(a.ids + slot);
  if (expert < 0) {
    if (a.ids_settled) wait_for_previous();  // every kernel of a chain waits
    return;
  }
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t cells = (a.k + cell_columns - 1) / cell_columns;
  const std::size_t across = std::size_t{cells} * cell_form(type).bytes;
  const unsigned char* const matrix = a.matrix_of(expert);
  // The tile's two rows of cells. The second one may be behind the last: it repeats the first.
  const std::uint32_t last = (a.n + cell_rows - 1) / cell_rows - 1,
                      low = tile_row(a, blockIdx.x, 0) / cell_rows,
                      high = min(tile_row(a, blockIdx.x, 8) / cell_rows, last);
  const unsigned char* const w[2] = {matrix + low * across, matrix + high * across};
  const element* const x = a.row_of(slot);
  float sums[4] = {};
  cell_piece<type> one, other;
  const auto load_weights = [&](cell_piece<type>& p, std::uint32_t at) {
    if (at < cells) p.load_weights(w, at, lane);
  };
  const auto load = [&](cell_piece<type>& p, std::uint32_t at) {
    load_weights(p, at);
    if (at < cells) p.load_x(x, a.k, 1, at, lane);
  };
  load_weights(one, warp);
  if (a.ids_settled) wait_for_previous();
  let_next_start();  // not before: see expert_product::ids_settled
  if (warp < cells) one.load_x(x, a.k, 1, warp, lane);
  for (std::uint32_t at = warp; at < cells; at += 2 * warps) {
    load(other, at + warps);
    one.multiply(sums);
    if (at + warps >= cells) break;
    load(one, at + 2 * warps);
    other.multiply(sums);
  }
  parts[warp][lane] = make_float4(sums[0], sums[1], sums[2], sums[3]);
  __syncthreads();
  put_slot<dtype::bf16, warps>(a, expert, slot, reinterpret_cast<const float*>(parts));
}

}  // namespace

void expert_stream_blocks(device& d, dtype type, const expert_args& a) {
  with_block_type(
      type, [&](auto of) { launch(d, expert_kernel<of>, dim3((a.n + 15) / 16, a.slots), warps * 32, 0, a); });
}

}  // namespace weir::kernels::cuda
