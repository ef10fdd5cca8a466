// Products of few rows with quantised weights. Cells go from memory straight into the registers of the warps
// that multiply them.
//
// A block computes a tile of 16 rows of the weights, which are two rows of cells; for silu one is of gate and
// the other of up. Its warps take cells of K one after another, and each loads its next cells while it
// multiplies the present ones. The loads of the first cells begin before the kernel waits for the kernel that
// computes x. At the end the block adds the warps' sums in shared memory. No other block adds to them, so the
// order in which a row is summed depends on K alone.
#include "kernels/cuda/products/stream_blocks.h"

#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/products/block_codes.h"

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
};

// Two cells at one place of K, one of each slab of the tile, and the elements of x that they multiply. Of x a
// lane has row lane / 4 of each unit of 8 rows, in the columns in which it has weights (block_layout.h).
template <dtype type, int wide>
struct piece {
  static constexpr int units = wide / 8;
  cell_row<type> low, high;
  uint2 x[units][4][2];

  __device__ __forceinline__ void load_weights(const unsigned char* const (&w)[2], std::uint32_t at,
                                               std::uint32_t lane) {
    low.load(w[0] + std::size_t{at} * cell_form(type).bytes, lane);
    high.load(w[1] + std::size_t{at} * cell_form(type).bytes, lane);
  }
  __device__ __forceinline__ void load_x(const block_args& a, std::uint32_t at, std::uint32_t lane) {
    const element* from = a.x + std::size_t{lane / 4} * a.k + at * cell_columns + lane % 4 * 4;
#pragma unroll
    for (int u = 0; u < units; ++u)
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t column = at * cell_columns + i * 16;
        x[u][i / 2][i % 2] = make_uint2(0, 0);
        if (column < a.k && lane / 4 + u * 8 < a.m)
          x[u][i / 2][i % 2] =
              __ldcg(reinterpret_cast<const uint2*>(from + std::size_t{a.k} * u * 8 + i * 16));
      }
  }

  __device__ __forceinline__ void multiply(float (&sums)[units][4]) const {
    constexpr block_format f = format_of(type);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::uint32_t a[4], b[4];
      low.expand(j, a);
      high.expand(j, b);
#pragma unroll
      for (int h = 0; h < 32 / f.group; ++h) {
        const float s = low.scale(j, h), t = high.scale(j, h);
#pragma unroll
        for (int u = 0; u < units; ++u) {
          const uint2 y = x[u][j][h], z = x[u][j][1];
          float c[4];
          mma_from(c, {a[2 * h], b[2 * h], a[2 * h + 1], b[2 * h + 1]}, y, 0, 0, 0, 0);
          if constexpr (f.group == 32) mma_more(c, {a[2], b[2], a[3], b[3]}, z);
          sums[u][0] += s * c[0];
          sums[u][1] += s * c[1];
          sums[u][2] += t * c[2];
          sums[u][3] += t * c[3];
          if constexpr (f.minima) {  // the sums of x over the group, by a product with ones
            float all[4];
            mma_ones(all, y);
            if constexpr (f.group == 32) mma_more_ones(all, z);
            const float lowest = low.minimum(j, h), other = high.minimum(j, h);
            sums[u][0] += lowest * all[0];
            sums[u][1] += lowest * all[1];
            sums[u][2] += other * all[0];
            sums[u][3] += other * all[1];
          }
        }
      }
    }
  }
};

// Writes output `row` of row `column` of x, or adds to it.
__device__ __forceinline__ void put(const block_args& a, std::uint32_t row, std::uint32_t column, float v) {
  const std::size_t at = std::size_t{column} * a.stride + row;
  if (a.kind == product_out::f32)
    static_cast<float*>(a.out)[at] = v;
  else if (a.kind == product_out::add_f32)
    static_cast<float*>(a.out)[at] += v;
  else
    static_cast<element*>(a.out)[at] = element_of<dtype::bf16>(v);
}

// Adds the warps' sums of the tile, and writes the outputs. `parts` is [warps, units, 32 lanes, 4], the
// accumulators of mma().
template <int wide>
__device__ __forceinline__ void finish(const block_args& a, const float* parts) {
  constexpr int tile = wide * tile_rows;
  const auto sum_of = [&](int e) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += parts[w * tile + e];
    return sum;
  };
  for (int e = static_cast<int>(threadIdx.x); e < tile; e += warps * 32) {
    const int lane = e / 4 % 32, j = e % 4;
    const auto column = static_cast<std::uint32_t>(e / 128 * 8 + lane % 4 * 2 + j % 2);
    if (column >= a.m) continue;
    if (a.kind == product_out::silu) {
      if (j >= 2) continue;
      const float gate = sum_of(e), up = sum_of(e + 2);
      put(a, blockIdx.x * 8 + lane / 4, column, gate / (1.0f + __expf(-gate)) * up);
    } else {
      const std::uint32_t row = blockIdx.x * tile_rows + lane / 4 + (j >= 2 ? 8 : 0);
      if (row < a.n) put(a, row, column, sum_of(e));
    }
  }
}

template <dtype type, int wide>
__global__ void __launch_bounds__(warps * 32, 2) blocks_kernel(const block_args a) {
  constexpr int units = wide / 8;
  __shared__ float4 parts[warps][units][32];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t first = blockIdx.x * a.step;
  const unsigned char* const w[2] = {a.w + first * a.across,
                                     a.w + min(first + a.other, a.slabs - 1) * a.across};
  piece<type, wide> one, other;
  if (warp < a.cells) one.load_weights(w, warp, lane);
  if (warp + warps < a.cells) other.load_weights(w, warp + warps, lane);
  let_next_start();
  wait_for_previous();
  float sums[units][4] = {};
  if (wide == 8 && warp < a.cells) one.load_x(a, warp, lane);
  const auto multiply = [&](piece<type, wide>& p, std::uint32_t at) {
    if (wide > 8) p.load_x(a, at, lane);  // too few registers to load x earlier
    p.multiply(sums);
    if (at + 2 * warps < a.cells) p.load_weights(w, at + 2 * warps, lane);
  };
  for (std::uint32_t at = warp; at < a.cells; at += 2 * warps) {
    if (wide == 8 && at + warps < a.cells) other.load_x(a, at + warps, lane);
    multiply(one, at);
    if (at + warps >= a.cells) break;
    if (wide == 8 && at + 2 * warps < a.cells) one.load_x(a, at + 2 * warps, lane);
    multiply(other, at + warps);
  }
#pragma unroll
  for (int u = 0; u < units; ++u)
    parts[warp][u][lane] = make_float4(sums[u][0], sums[u][1], sums[u][2], sums[u][3]);
  __syncthreads();
  finish<wide>(a, reinterpret_cast<const float*>(parts));
}

constexpr std::uint32_t most_rows = 8;

}  // namespace

bool can_stream_blocks(const device& d, const block_product& p) {
  return can_tile_blocks(d, p) || takes_wide_blocks(d, p);
}

bool takes_wide_blocks(const device& d, const block_product& p) {
  return p.m > most_rows && can_wide_blocks(d, p);
}

void stream_blocks(device& d, const block_product& p) {
  if (p.m > most_rows) return takes_wide_blocks(d, p) ? wide_blocks(d, p) : tile_blocks(d, p);
  if (can_stream_bulk(d, p)) return stream_bulk(d, p);
  const bool halved = p.kind == product_out::silu;
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
  const dim3 tiles(static_cast<unsigned>(up(p.w.rows, tile_rows)));
  with_block_type(p.w.type, [&](auto type) { launch(d, blocks_kernel<type, 8>, tiles, warps * 32, 0, a); });
}

}  // namespace weir::kernels::cuda
