// Products of few slots with plain weights. Each slot has blocks of its own: a block computes one tile of 16
// rows of the slot's expert, as in products/stream_general.cu. Slots that share an expert find its matrix in
// the L2 cache.
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/experts/put_expert.h"
#include "kernels/cuda/products/general_piece.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t warps = 8;

template <dtype type>
__global__ void __launch_bounds__(warps * 32, 2) expert_kernel(const expert_args a) {
  using size = piece_size<8>;
  __shared__ float4 parts[warps][32];
  wait_for_previous();
  let_next_start();  // not before: see expert_product::ids_settled
  const auto slot = static_cast<std::int32_t>(blockIdx.y);
  const std::int32_t expert = __ldcg(a.ids + slot);
  if (expert < 0) return;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t pieces = (a.k + size::columns - 1) / size::columns;
  const auto* matrix = reinterpret_cast<const element*>(a.matrix_of(expert));
  const element* const w[2] = {matrix + std::size_t{tile_row(a, blockIdx.x, lane / 4)} * a.k,
                               matrix + std::size_t{tile_row(a, blockIdx.x, lane / 4 + 8)} * a.k};
  // There is one row of x: only the lanes of row 0 load.
  const element* x = a.row_of(slot);
  float sums[1][4] = {};
  plain_piece<8> one, other;
  if (warp < pieces) one.load(a.k, 1, w, x, warp, lane);
  for (std::uint32_t at = warp; at < pieces; at += 2 * warps) {
    if (at + warps < pieces) other.load(a.k, 1, w, x, at + warps, lane);
    one.template multiply<type>(sums);
    if (at + warps >= pieces) break;
    if (at + 2 * warps < pieces) one.load(a.k, 1, w, x, at + 2 * warps, lane);
    other.template multiply<type>(sums);
  }
  parts[warp][lane] = make_float4(sums[0][0], sums[0][1], sums[0][2], sums[0][3]);
  __syncthreads();
  put_slot<type, warps>(a, expert, slot, reinterpret_cast<const float*>(parts));
}

}  // namespace

void expert_stream(device& d, dtype type, const expert_args& a) {
  const auto kernel = type == dtype::f16 ? expert_kernel<dtype::f16> : expert_kernel<dtype::bf16>;
  launch(d, kernel, dim3((a.n + 15) / 16, a.slots), warps * 32, 0, a);
}

}  // namespace weir::kernels::cuda
