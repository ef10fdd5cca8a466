// Products of 2 to 8 rows with quantised weights on the Hopper path. A single row has the kernel of
// stream_blocks_single.cu.
//
// How blocks and warps divide the work, and how they load it, is in stream_blocks_ring.h. The loads of the
// first tiles begin before the kernel waits for the kernel that computes x. A warp keeps its part of x in
// registers; the warps synchronise only at the end of a tile, to add their sums.
#include <algorithm>

#include "kernels/cuda/products/block_codes.h"
#include "kernels/cuda/products/stream_blocks_ring.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = bulk_block::warps, tile = bulk_block::tile_rows * 8;
constexpr std::size_t room = warps * tile;  // floats: the warps' sums of a tile
static_assert(2 * room <= bulk_block::sums);

// A warp's part of x: its elements in the warp's run of cells, and the sums of each 32 columns. A lane has
// the sums of the two rows of x that it has in the accumulators of mma(). Where codes are multiplied with
// their excess (cell_row::excess), the sums are times -excess: they cancel what the excess adds.
template <dtype type, std::uint32_t most_run>
struct part_of_x {
  static constexpr block_format f = format_of(type);
  static constexpr bool folds = cell_row<type>::counted && f.group == 32;
  [[maybe_unused]] static constexpr bool has_sums = f.group == 32 && (f.minima || folds);
  [[maybe_unused]] static constexpr float factor = folds ? -cell_row<type>::excess : 1;
  uint2 x[most_run][4][2];
  float sums[most_run][4][2];

  __device__ __forceinline__ void load(const bulk_args& a, std::uint32_t first, std::uint32_t run) {
    const std::uint32_t lane = threadIdx.x % 32, row = lane / 4;
#pragma unroll
    for (std::uint32_t c = 0; c < most_run; ++c)
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t column = (first + c) * cell_columns + i * 16;
        x[c][i / 2][i % 2] = make_uint2(0, 0);
        if (c < run && column < a.k && row < a.m)
          x[c][i / 2][i % 2] =
              __ldcg(reinterpret_cast<const uint2*>(a.x + std::size_t{row} * a.k + column + lane % 4 * 4));
      }
    if constexpr (has_sums) {
#pragma unroll
      for (std::uint32_t c = 0; c < most_run; ++c)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          float all[4];
          mma_ones(all, x[c][j][0]);
          mma_more_ones(all, x[c][j][1]);
          sums[c][j][0] = factor * all[0];
          sums[c][j][1] = factor * all[1];
        }
    }
  }
};

// Adds the products of two cells, one of each slab of the tile.
template <dtype type>
__device__ __forceinline__ void multiply(const unsigned char* low_cell, const unsigned char* high_cell,
                                         const uint2 (&x)[4][2], const float (&x_sums)[4][2],
                                         float (&sums)[4]) {
  using part = part_of_x<type, 1>;
  constexpr block_format f = format_of(type);
  const std::uint32_t lane = threadIdx.x % 32;
  cell_row<type> low, high;
  low.load_shared(low_cell, lane);
  high.load_shared(high_cell, lane);
  float scaled[4] = {}, least[4] = {};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    std::uint32_t a[4], b[4];
    if constexpr (part::folds) {
      low.expand_raw(j, a);
      high.expand_raw(j, b);
    } else {
      low.expand(j, a);
      high.expand(j, b);
    }
#pragma unroll
    for (int h = 0; h < 32 / f.group; ++h) {
      float c[4], all[4];
      if constexpr (part::folds) {
        const float f0 = x_sums[j][0], f1 = x_sums[j][1];
        mma_from(c, {a[0], b[0], a[1], b[1]}, x[j][0], f0, f1, f0, f1);
      } else {
        mma_from(c, {a[2 * h], b[2 * h], a[2 * h + 1], b[2 * h + 1]}, x[j][h], 0, 0, 0, 0);
      }
      if constexpr (f.group == 32) mma_more(c, {a[2], b[2], a[3], b[3]}, x[j][1]);
      const float s = low.own_scale(j, h), t = high.own_scale(j, h);
      scaled[0] += s * c[0];
      scaled[1] += s * c[1];
      scaled[2] += t * c[2];
      scaled[3] += t * c[3];
      if constexpr (f.minima) {
        if constexpr (part::has_sums) {
          all[0] = x_sums[j][0];
          all[1] = x_sums[j][1];
        } else {
          mma_ones(all, x[j][h]);
        }
        const float lowest = low.own_minimum(j, h), other = high.own_minimum(j, h);
        least[0] += lowest * all[0];
        least[1] += lowest * all[1];
        least[2] += other * all[0];
        least[3] += other * all[1];
      }
    }
  }
  const float s = low.whole_scale(), t = high.whole_scale();
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] += (i < 2 ? s : t) * scaled[i];
  if constexpr (f.minima) {
    // Exact: where there are minima the factor is a power of two.
    constexpr float undo = part::has_sums ? 1 / part::factor : 1;
    const float lowest = undo * low.whole_minimum(), other = undo * high.whole_minimum();
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] += (i < 2 ? lowest : other) * least[i];
  }
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Adds the warps' sums of tile `index`, and writes the outputs. `part` is [warps, 32 lanes, 4].
__device__ __forceinline__ void finish_tile(const bulk_args& a, const float* part, std::uint32_t index) {
  const int e = static_cast<int>(threadIdx.x), lane = e / 4, j = e % 4;
  const auto column = static_cast<std::uint32_t>(lane % 4 * 2 + j % 2);
  const bool halved = a.kind == product_out::gated;
  if (e >= tile || column >= a.m || (halved && j >= 2)) return;
  const auto sum_of = [&](int at) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += part[w * tile + at];
    return sum;
  };
  const std::uint32_t row = index * a.step * cell_rows + lane / 4 + (j >= 2 ? cell_rows : 0);
  put_bulk(a, row, column, sum_of(e), halved ? sum_of(e + 2) : 0);
}
#endif

template <dtype type, std::uint32_t most_run>
__global__ void __launch_bounds__(warps * 32, 1) bulk_kernel(const __grid_constant__ bulk_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr std::uint32_t cell = cell_form(type).bytes;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ __align__(8) std::uint64_t arrived[warps * bulk_block::most_stages];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  auto* part = reinterpret_cast<float*>(shared + warps * bulk_block::ring_bytes);
  cell_ring<type> ring(a, shared, arrived, 2);
  let_next_start();
  part_of_x<type, most_run> x;
  wait_for_previous();
  x.load(a, ring.first, ring.run);
  ring.ask_rest();

  std::uint32_t buffer = 0;
  for (std::uint32_t t = ring.first_tile(); t < a.tiles; t += ring.step(), buffer ^= 1) {
    float sums[4] = {};
    if (ring.run > 0) {
      const unsigned char* at = ring.wait();
#pragma unroll
      for (std::uint32_t c = 0; c < most_run; ++c)
        if (c < ring.run) multiply<type>(at + c * cell, at + ring.bytes + c * cell, x.x[c], x.sums[c], sums);
      ring.leave();
    }
    float* sums_of_tile = part + buffer * room;
    *reinterpret_cast<float4*>(sums_of_tile + warp * tile + lane * 4) =
        make_float4(sums[0], sums[1], sums[2], sums[3]);
    __syncthreads();
    finish_tile(a, sums_of_tile, t);
  }
#endif
}

}  // namespace

bulk_args bulk_args_of(const device& d, const block_product& p, std::uint32_t stages) {
  const bool halved = p.kind == product_out::gated;
  const bulk_division how = divide_bulk(p.w.type, p.w.cols, p.kind);
  bulk_args a{};
  a.w = static_cast<const unsigned char*>(p.w.data);
  a.x = p.x;
  a.out = p.out;
  a.n = p.w.rows;
  a.k = p.w.cols;
  a.m = p.m;
  a.stride = p.stride();
  a.cells = static_cast<std::uint32_t>(up(p.w.cols, cell_columns));
  a.across = std::uint64_t{a.cells} * cell_form(p.w.type).bytes;
  a.slabs = static_cast<std::uint32_t>(up(p.w.rows, cell_rows));
  a.step = halved ? 1 : 2;
  a.other = halved ? a.slabs / 2 : 1;
  a.parts = how.parts;
  a.tiles = static_cast<std::uint32_t>(up(p.w.rows, bulk_block::tile_rows));
  a.stages = std::min(how.stages, stages);
  a.kind = p.kind;
  a.gate = p.gate;
  a.norm = p.norm;
  a.inputs = p.gathers ? p.w.inputs : nullptr;
  a.width = p.w.width();
  // Where there are few tiles or few bytes, what is asked for early is more in the way of x.
  const std::uint32_t room = static_cast<std::uint32_t>(d.multiprocessors) / a.parts;
  a.early = cell_form(p.w.type).code_bits == 8 && a.tiles >= 4 * room ? 2 : 1;
  return a;
}

dim3 bulk_grid(const device& d, const bulk_args& a) {
  return {std::min(static_cast<std::uint32_t>(d.multiprocessors) / a.parts, a.tiles) * a.parts};
}

void stream_bulk(device& d, const block_product& p) {
  const bulk_args a = bulk_args_of(d, p, bulk_block::most_stages);
  const std::uint32_t run = divide_bulk(p.w.type, p.w.cols, p.kind).run;
  with_block_type(p.w.type, [&](auto type) {
    const auto kernel = run <= 2 ? bulk_kernel<type, 2> : bulk_kernel<type, bulk_block::longest_run>;
    allow_shared(d, kernel, bulk_block::shared_bytes);
    launch(d, kernel, bulk_grid(d, a), warps * 32, bulk_block::shared_bytes, a);
  });
}

}  // namespace weir::kernels::cuda
