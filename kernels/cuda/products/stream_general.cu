// Products of few rows on the general path. The weights are read once, at the speed of the memory: from there
// straight into the registers of the warps that multiply them.
//
// A block computes one tile of 16 rows of the weights. Its warps take pieces of K one after another, and each
// loads its next piece while it multiplies the present one. At the end the block adds the warps' sums in
// shared memory. No other block adds to them, so the order in which a row is summed depends on K alone.
#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/products/general_piece.h"
#include "kernels/cuda/products/products.h"
#include "kernels/cuda/products/put_output.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = 8, rows_of_tile = 16;

// x is [m, k], w is [n, k].
struct general_args {
  const element* w;
  const element* x;
  void* out;
  std::uint32_t n, k, m;
  activation gate;
};

// The row of the weights that is row `r` of the block's tile. For gated a tile has eight rows of gate and the
// same eight rows of up. Rows behind the last one repeat it.
template <product_out kind>
__device__ std::uint32_t row_of(const general_args& a, std::uint32_t r) {
  if constexpr (kind == product_out::gated) return (r < 8 ? 0 : a.n / 2 - 8) + blockIdx.x * 8 + r;
  return min(blockIdx.x * rows_of_tile + r, a.n - 1);
}

template <dtype type, product_out kind, int wide>
__global__ void __launch_bounds__(warps * 32, 2) general_kernel(const general_args a) {
  using size = piece_size<wide>;
  __shared__ float4 parts[warps][size::units][32];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t pieces = (a.k + size::columns - 1) / size::columns;
  const element* const w[2] = {a.w + std::size_t{row_of<kind>(a, lane / 4)} * a.k,
                               a.w + std::size_t{row_of<kind>(a, lane / 4 + 8)} * a.k};
  const element* x = a.x + std::size_t{lane / 4} * a.k;
  float sums[size::units][4] = {};
  plain_piece<wide> one, other;
  if (warp < pieces) one.load(a.k, a.m, w, x, warp, lane);
  for (std::uint32_t at = warp; at < pieces; at += 2 * warps) {
    if (at + warps < pieces) other.load(a.k, a.m, w, x, at + warps, lane);
    one.template multiply<type>(sums);
    if (at + warps >= pieces) break;
    if (at + 2 * warps < pieces) one.load(a.k, a.m, w, x, at + 2 * warps, lane);
    other.template multiply<type>(sums);
  }
#pragma unroll
  for (int u = 0; u < size::units; ++u)
    parts[warp][u][lane] = make_float4(sums[u][0], sums[u][1], sums[u][2], sums[u][3]);
  __syncthreads();
  const product_outputs to{a.out, a.n, a.m, kind == product_out::gated ? a.n / 2 : a.n, kind, a.gate};
  put_tile<type, warps, wide>(to, reinterpret_cast<const float*>(parts));
}

template <dtype type, product_out kind, int wide>
void start(device& d, const product& p) {
  const general_args a{
      static_cast<const element*>(p.w), static_cast<const element*>(p.x), p.out, p.n, p.k, p.m, p.gate};
  launch(d, general_kernel<type, kind, wide>, dim3((p.n + rows_of_tile - 1) / rows_of_tile), warps * 32, 0,
         a);
}

template <dtype type, product_out kind>
void start(device& d, const product& p) {
  if (p.m <= 8) return start<type, kind, 8>(d, p);
  start<type, kind, 16>(d, p);
}

}  // namespace

void stream_general_product(device& d, const product& p) {
  with_constants(p, [&](auto type, auto kind) { start<type, kind>(d, p); });
}

}  // namespace weir::kernels::cuda
