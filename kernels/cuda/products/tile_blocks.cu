// Products of 9 to 64 rows with quantised weights, where wide_blocks.cu does not serve: on the general path.
// A block computes a tile of 128 rows of the weights by 32 or 64 rows of x. Cells go from memory into the
// registers of the warps that multiply them, where they are rounded to bf16; x passes through a ring in
// shared memory that asynchronous copies fill. Where there are fewer tiles than blocks that run at once,
// several blocks share the K of a tile: each stores its sums, and the block that comes last adds them in
// order.
#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/products/block_tile.h"
#include "kernels/cuda/products/put_output.h"
#include "kernels/cuda/products/shared_tile.h"
#include "kernels/cuda/products/stream_blocks.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = 8, threads = warps * 32;
constexpr int stages = 4;

struct tile_args {
  const unsigned char* w;
  const element* x;
  void* out;
  float4* parts;         // [tiles, gridDim.z, units, threads]: sums of the blocks that share a tile
  unsigned* arrived;     // [tiles]: how many of them are done; zero between kernels
  std::uint64_t across;  // bytes from one row of cells to the next
  // As in stream_blocks.cu, for tiles of 16 rows.
  std::uint32_t n, k, m, stride, cells, slabs, step, other;
  product_out kind;
  activation gate;
};

// Begins to copy columns 128 * cell on of the block's rows of x.
template <int wide>
__device__ __forceinline__ void copy_x(const tile_args& a, std::uint32_t stage, std::uint32_t cell) {
#pragma unroll
  for (int i = 0; i < wide * tile_row_units / threads; ++i) {
    const std::uint32_t at = threadIdx.x + i * threads, r = at / tile_row_units, unit = at % tile_row_units,
                        row = blockIdx.x * wide + r, column = cell * cell_columns + unit * 8;
    const bool there = row < a.m && column < a.k;
    copy_or_zeros(stage + tile_place(r, unit) * 16, a.x + (there ? std::size_t{row} * a.k + column : 0),
                  there);
  }
}

// Writes output `row` of row `column` of x, or adds to it.
__device__ __forceinline__ void put(const tile_args& a, std::uint32_t row, std::uint32_t column, float v) {
  if (row >= a.n || column >= a.m) return;
  put_output<dtype::bf16>(a.out, a.kind, std::size_t{column} * a.stride + row, v);
}

// Writes the sums of tile `tile` of 16 rows.
template <int units>
__device__ __forceinline__ void finish(const tile_args& a, std::uint32_t tile,
                                       const float (&sums)[units][4]) {
  const std::uint32_t lane = threadIdx.x % 32, first = tile * a.step * cell_rows + lane / 4;
#pragma unroll
  for (int u = 0; u < units; ++u)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t column = blockIdx.x * (units * 8) + u * 8 + lane % 4 * 2 + i;
      const float v = sums[u][i], w = sums[u][2 + i];
      if (a.kind == product_out::gated) {
        if (first < a.n / 2) put(a, first, column, gated(a.gate, v, w));
      } else {
        put(a, first, column, v);
        put(a, first + cell_rows, column, w);
      }
    }
}

template <dtype type, int wide>
__global__ void __launch_bounds__(threads, 2) tile_kernel(const tile_args a) {
  constexpr int units = wide / 8;
  constexpr std::uint32_t stage_bytes = wide * tile_row_units * 16;
  extern __shared__ __align__(128) unsigned char shared[];
  const std::uint32_t base = shared_address(shared), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t begin = a.cells * blockIdx.z / gridDim.z, end = a.cells * (blockIdx.z + 1) / gridDim.z;
  const std::uint32_t tile = blockIdx.y * warps + warp, slab = min(tile * a.step, a.slabs - 1);
  const unsigned char* const w[2] = {a.w + slab * a.across,
                                     a.w + min(slab + a.other, a.slabs - 1) * a.across};
  tile_weights<type> one, other;
  one.load(w, begin, lane);
  let_next_start();
  wait_for_previous();
  std::uint32_t asked = begin;
  const auto ask = [&] {
    if (asked < end) copy_x<wide>(a, base + (asked - begin) % stages * stage_bytes, asked);
    ++asked;
    copies_end_group();
  };
#pragma unroll
  for (int i = 0; i < stages - 1; ++i) ask();
  float sums[units][4] = {};
  const auto step = [&](tile_weights<type>& now, tile_weights<type>& next, std::uint32_t at) {
    if (at + 1 < end) next.load(w, at + 1, lane);
    copies_wait<stages - 2>();
    __syncthreads();  // all see the stage, and all have read the one before it
    ask();
    multiply_tile<type, units>(now, shared + (at - begin) % stages * stage_bytes, sums);
  };
  for (std::uint32_t at = begin; at < end; at += 2) {
    step(one, other, at);
    if (at + 1 < end) step(other, one, at + 1);
  }
  if (gridDim.z > 1 && !join_tile<units, threads>(a.parts, a.arrived, sums)) return;
  finish<units>(a, tile, sums);
}

template <dtype type, int wide>
void start(device& d, const tile_args& a, std::uint32_t tiles) {
  constexpr std::size_t bytes = std::size_t{stages} * wide * tile_row_units * 16;
  static_assert(bytes <= general_shared);
  const auto kernel = tile_kernel<type, wide>;
  allow_shared(d, kernel, bytes);
  const std::uint32_t across = (a.m + wide - 1) / wide, all = across * tiles;
  // As many blocks share the K of a tile as can all run at once, each with at least four cells.
  const auto room = static_cast<std::uint32_t>(2 * d.multiprocessors);
  const std::uint32_t parts = std::clamp(room / all, 1u, std::clamp(a.cells / 4, 1u, 16u));
  launch(d, kernel, dim3(across, tiles, parts), threads, bytes, a);
}

}  // namespace

void tile_blocks(device& d, const block_product& p) {
  const bool halved = p.kind == product_out::gated;
  tile_args a{};
  a.w = static_cast<const unsigned char*>(p.w.data);
  a.x = p.x;
  a.out = p.out;
  a.parts = static_cast<float4*>(d.workspace);
  a.arrived = d.arrived;
  a.n = p.w.rows;
  a.k = p.w.cols;
  a.m = p.m;
  a.stride = p.stride();
  a.cells = static_cast<std::uint32_t>(up(p.w.cols, cell_columns));
  a.across = std::uint64_t{a.cells} * cell_form(p.w.type).bytes;
  a.slabs = static_cast<std::uint32_t>(up(p.w.rows, cell_rows));
  a.step = halved ? 1 : 2;
  a.other = halved ? a.slabs / 2 : 1;
  a.kind = p.kind;
  a.gate = p.gate;
  const auto tiles = static_cast<std::uint32_t>(up(p.w.rows, warps * 16));
  with_block_type(p.w.type, [&](auto type) {
    if (p.m <= 32) return start<type, 32>(d, a, tiles);
    start<type, 64>(d, a, tiles);
  });
}

}  // namespace weir::kernels::cuda
