// Products of few rows on the general path. The weights are read once, at the speed of the memory: from there
// straight into the registers of the warps that multiply them.
//
// A block computes one tile of 16 rows of the weights. Its warps take pieces of K one after another, and each
// loads its next piece while it multiplies the present one. At the end the block adds the warps' sums in
// shared memory. No other block adds to them, so the order in which a row is summed depends on K alone.
#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/products/products.h"
#include "kernels/cuda/products/put_output.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = 8, rows_of_tile = 16, chunk = 32;  // chunk: columns; four lanes have 8 of them each

// The sizes for up to `wide` rows of x. Two pieces in registers leave room for two blocks on a
// multiprocessor.
template <int wide>
struct piece_size {
  static constexpr int units = wide / 8;            // of 8 rows of x
  static constexpr int chunks = wide <= 8 ? 4 : 2;  // of a piece
  static constexpr std::uint32_t columns = chunks * chunk;
};

// x is [m, k], w is [n, k].
struct general_args {
  const element* w;
  const element* x;
  void* out;
  std::uint32_t n, k, m;
  activation gate;
};

// Reads 16 bytes that are read only once.
__device__ __forceinline__ uint4 load_once(const element* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}
// Reads 16 bytes that other blocks read, too.
__device__ __forceinline__ uint4 load_often(const element* from) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// A lane's part of a piece: of each chunk eight columns, from lane % 4 * 8 on, in rows lane / 4 and
// lane / 4 + 8 of the tile and in row lane / 4 of each unit of x. The order of k within an instruction
// is free, as long as x and the weights have the same order.
template <int wide>
struct piece {
  using size = piece_size<wide>;
  uint4 low[size::chunks], high[size::chunks], x[size::units][size::chunks];

  // Loads piece `at` of K. `w` are the lane's two rows of the weights; `x_at` is row lane / 4 of x.
  __device__ __forceinline__ void load(const general_args& a, const element* const (&w)[2],
                                       const element* x_at, std::uint32_t at, std::uint32_t lane) {
    constexpr uint4 zeros = {0, 0, 0, 0};
#pragma unroll
    for (int c = 0; c < size::chunks; ++c) {
      const std::uint32_t column = at * size::columns + c * chunk + lane % 4 * 8;
      const bool there = column < a.k;
      low[c] = there ? load_once(w[0] + column) : zeros;
      high[c] = there ? load_once(w[1] + column) : zeros;
#pragma unroll
      for (int u = 0; u < size::units; ++u)
        x[u][c] =
            there && lane / 4 + u * 8 < a.m ? load_often(x_at + std::size_t{a.k} * u * 8 + column) : zeros;
    }
  }

  template <dtype type>
  __device__ __forceinline__ void multiply(float (&sums)[size::units][4]) const {
#pragma unroll
    for (int c = 0; c < size::chunks; ++c)
#pragma unroll
      for (int u = 0; u < size::units; ++u) {
        mma<type>(sums[u], low[c].x, high[c].x, low[c].y, high[c].y, x[u][c].x, x[u][c].y);
        mma<type>(sums[u], low[c].z, high[c].z, low[c].w, high[c].w, x[u][c].z, x[u][c].w);
      }
  }
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
  piece<wide> one, other;
  if (warp < pieces) one.load(a, w, x, warp, lane);
  for (std::uint32_t at = warp; at < pieces; at += 2 * warps) {
    if (at + warps < pieces) other.load(a, w, x, at + warps, lane);
    one.template multiply<type>(sums);
    if (at + warps >= pieces) break;
    if (at + 2 * warps < pieces) one.load(a, w, x, at + 2 * warps, lane);
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
