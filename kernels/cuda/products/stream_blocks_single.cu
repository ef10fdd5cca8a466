// Products of a single row with quantised weights on the Hopper path. The work is divided and loaded as
// stream_blocks_ring.h says.
//
// mma() multiplies the weights by eight columns. A single row would leave seven of them empty. So each column
// is given the elements of x for one group of the weights, and zeros elsewhere: the instructions of eight
// groups then add up in one accumulator, in which every group has a sum of its own. A lane has the sums of
// two groups for two rows of the weights, and scales these alone. stream_blocks_bulk.cu scales the sums of
// every group in every lane. What codes are too large by (cell_row::excess, and the zero) is taken from the
// sum of the group: it is multiplied by the group's sum of x. A norm in front of the product is computed here
// as well (row_norm.h), and x is put in the order of the weights' inputs.
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/products/block_pairs.h"
#include "kernels/cuda/products/row_norm.h"
#include "kernels/cuda/products/stream_blocks_ring.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = bulk_block::warps, tile_rows = bulk_block::tile_rows;
// The warps synchronise once in so many tiles. Their sums have two buffers, which they use alternately.
constexpr std::uint32_t batch = 8, room = batch * warps * tile_rows;
static_assert(2 * room <= bulk_block::sums && batch * tile_rows <= warps * 32);

// Elements `i` to `i` + 3 of the row in front of the norm, times the norm's weights. Adds their squares.
__device__ __forceinline__ uint2 normed_four(const float* row, const float* weight, std::uint32_t i,
                                             float& squares) {
  const float4 v = __ldcg(reinterpret_cast<const float4*>(row + i)),
               w = __ldg(reinterpret_cast<const float4*>(weight + i));
  squares += squares_of(v);
  return make_uint2(pair_of<dtype::bf16>(v.x * w.x, v.y * w.y), pair_of<dtype::bf16>(v.z * w.z, v.w * w.w));
}

// A warp's part of x, in chains of eight groups. Column n of an accumulator belongs to group n of a chain; a
// lane has columns 2 * q and 2 * q + 1, with q = lane % 4, and of x the elements of column lane / 4.
template <dtype type, int most_run>
struct chains_of_x {
  static constexpr block_format f = format_of(type);
  static constexpr bool raw = cell_row<type>::units == 1 && !is_table(type);  // with their excess
  static constexpr float excess = raw ? cell_row<type>::excess : 0;
  static constexpr bool has_sums = raw || f.minima || f.zeros;
  static constexpr int cells = f.group == 32 ? 2 : 1, chains = (most_run + cells - 1) / cells;
  uint2 x[most_run][4][2] = {};
  float sums[chains][2] = {};

  // Reads the warp's elements: `read(c, at, has)` gives those of columns `at` to `at` + 3, which are in cell
  // `c` of the run, as two pairs; without `has` there are no such columns, and zeros are taken. A lane reads
  // four neighbours of each cell, and has the others from other lanes.
  template <class Read>
  __device__ __forceinline__ void load(std::uint32_t k, std::uint32_t first, std::uint32_t run,
                                       const Read& read) {
    const std::uint32_t lane = threadIdx.x % 32, column = lane / 4;
    uint2 own[most_run];
#pragma unroll
    for (int c = 0; c < most_run; ++c) {
      const std::uint32_t at = (first + c) * cell_columns + lane * 4;
      const bool has = c < static_cast<int>(run) && at < k;
      const uint2 v = read(c, min(at, k - 4), has);
      own[c] = has ? v : make_uint2(0, 0);
    }
#pragma unroll
    for (int c = 0; c < most_run; ++c)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const std::uint32_t from = cells == 2 ? (2 * (column % 4) + e) * 4 + lane % 4 : lane;
        uint2 v = own[c];
        if constexpr (cells == 2) v = {__shfl_sync(~0u, v.x, from), __shfl_sync(~0u, v.y, from)};
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (static_cast<int>(column) == (cells == 2 ? c % 2 * 4 + j : 2 * j + e)) x[c][j][e] = v;
      }
  }
  // The same of the row in front of the norm. Returns the sum of the squares of the warp's part of the row.
  __device__ __forceinline__ float load(const norm_before& norm, std::uint32_t k, std::uint32_t first,
                                        std::uint32_t run) {
    const float* const row = normed_row(norm, k);
    float squares = 0;
    load(k, first, run, [&](int, std::uint32_t at, bool has) {
      float more = 0;
      const uint2 v = normed_four(row, norm.weight, at, more);
      if (has) squares += more;
      return v;
    });
    return warp_sum(squares);
  }
  __device__ __forceinline__ void load(const element* row, std::uint32_t k, std::uint32_t first,
                                       std::uint32_t run) {
    load(k, first, run,
         [row](int, std::uint32_t at, bool) { return __ldcg(reinterpret_cast<const uint2*>(row + at)); });
  }
  // The same of a row in shared memory, of which inputs[c] are the lane's elements in cell `c`.
  __device__ __forceinline__ void load(const element* row, const uint4 (&inputs)[most_run], std::uint32_t k,
                                       std::uint32_t first, std::uint32_t run) {
    const auto* halves = reinterpret_cast<const unsigned short*>(row);
    const auto pair = [halves](std::uint32_t low, std::uint32_t high) {
      return std::uint32_t{halves[low]} | std::uint32_t{halves[high]} << 16;
    };
    load(k, first, run, [&](int c, std::uint32_t, bool) {
      return make_uint2(pair(inputs[c].x, inputs[c].y), pair(inputs[c].z, inputs[c].w));
    });
  }
  __device__ __forceinline__ void add_up() {
    if constexpr (has_sums) {
#pragma unroll
      for (int t = 0; t < chains; ++t) {
        float all[4] = {};
#pragma unroll
        for (int c = t * cells; c < t * cells + cells && c < most_run; ++c)
#pragma unroll
          for (int i = 0; i < 8; ++i) mma_more_ones(all, x[c][i / 2][i % 2]);
        sums[t][0] = all[0];
        sums[t][1] = all[1];
      }
    }
  }

  // Adds the products of the runs at `low` and at `high` to the sums of their rows, as far as they are of
  // this lane's groups.
  __device__ __forceinline__ void multiply(const unsigned char* low, const unsigned char* high,
                                           std::uint32_t run, float (&out)[2]) const {
    constexpr cell_form form(type);
    constexpr std::uint32_t cell = form.bytes;
    const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < chains; ++t) {
      if (t * cells >= static_cast<int>(run)) break;
      const float f0 = -excess * sums[t][0], f1 = -excess * sums[t][1];
      float c[2][4] = {{f0, f1, f0, f1}, {}};
#pragma unroll
      for (int i = t * cells; i < t * cells + cells && i < most_run; ++i) {
        if (i >= static_cast<int>(run)) break;
        cell_row<type> above, below;
        above.load_shared(low + i * cell, lane);
        below.load_shared(high + i * cell, lane);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          std::uint32_t a[4], b[4];
          expand(above, j, a);
          expand(below, j, b);
          mma_more(c[0], {a[0], b[0], a[1], b[1]}, x[i][j][0]);
          mma_more(c[1], {a[2], b[2], a[3], b[3]}, x[i][j][1]);
        }
      }
      const std::uint32_t q = lane % 4;
      // Where the run has no such cell the sums are zeros.
      const std::uint32_t mine = cells == 2 ? min(2 * t + q / 2, run - 1) : t;
      const std::uint32_t at = mine * cell + form.code_bytes + lane / 4 * form.words * 4;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const pair_scales<type> p((r ? high : low) + at, cells == 2 ? q % 2 : q);
#pragma unroll
        for (int g = 0; g < 2; ++g) {
          float v = c[0][2 * r + g] + c[1][2 * r + g];
          if constexpr (f.zeros) v -= p.zero[g] * sums[t][g];
          out[r] += p.scale[g] * v;
          if constexpr (f.minima) out[r] += p.least[g] * sums[t][g];
        }
      }
    }
  }

 private:
  __device__ __forceinline__ static void expand(const cell_row<type>& row, int j, std::uint32_t (&pairs)[4]) {
    if constexpr (raw)
      row.expand_raw(j, pairs);
    else
      row.expand_codes(j, pairs);
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Adds the warps' sums of `count` tiles, tile `first` and the block's next ones, and writes the outputs.
// `part` is [batch, warps, tile_rows], `squares` is [warps].
__device__ __forceinline__ void finish_tiles(const bulk_args& a, const float* part, const float* squares,
                                             std::uint32_t first, std::uint32_t step, std::uint32_t count) {
  const std::uint32_t slot = threadIdx.x / tile_rows, r = threadIdx.x % tile_rows;
  const bool halved = a.kind == product_out::gated;
  if (slot >= count || (halved && r >= cell_rows)) return;
  const float factor = factor_of<warps>(a.norm, squares, a.k);
  const auto sum_of = [&](std::uint32_t row) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += part[(slot * warps + w) * tile_rows + row];
    return factor * sum;
  };
  const std::uint32_t row = (first + slot * step) * a.step * cell_rows + r;
  put_bulk(a, row, 0, sum_of(r), halved ? sum_of(r + cell_rows) : 0);
}
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Brings a row of `width` elements into shared memory. All threads of the block call it.
__device__ __forceinline__ void stage_row(const element* row, std::uint32_t width, element* to) {
  for (std::uint32_t i = threadIdx.x * 8; i < width; i += warps * 32 * 8)
    *reinterpret_cast<uint4*>(to + i) = __ldcg(reinterpret_cast<const uint4*>(row + i));
}
// The same of the row in front of the norm. Returns the sum of the squares of what the warp brought.
__device__ __forceinline__ float stage_row(const norm_before& norm, std::uint32_t width, element* to) {
  const float* const row = normed_row(norm, width);
  float squares = 0;
  for (std::uint32_t i = threadIdx.x * 4; i < width; i += warps * 32 * 4)
    *reinterpret_cast<uint2*>(to + i) = normed_four(row, norm.weight, i, squares);
  return warp_sum(squares);
}
#endif

template <dtype type, int most_run>
__global__ void __launch_bounds__(warps * 32, 1) single_kernel(const __grid_constant__ bulk_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ __align__(8) std::uint64_t arrived[warps * bulk_block::most_stages];
  __shared__ float squares[warps];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  auto* part = reinterpret_cast<float*>(shared + warps * bulk_block::ring_bytes);
  cell_ring<type> ring(a, shared, arrived, a.early);
  // The weights of the norm are needed as soon as the row is there.
  const std::uint32_t column = ring.first * cell_columns + lane * 32;
  if (a.norm.rows && lane < ring.run * 4 && column < a.k) prefetch(a.norm.weight + column);
  uint4 inputs[most_run];
  if (a.inputs)
#pragma unroll
    for (int c = 0; c < most_run; ++c)
      inputs[c] = __ldg(reinterpret_cast<const uint4*>(
          a.inputs + min((ring.first + c) * cell_columns + lane * 4, a.k - 4)));
  let_next_start();
  wait_for_previous();
  chains_of_x<type, most_run> x;
  if (a.inputs) {  // through the memory of the sums, which are not there yet
    auto* const row = reinterpret_cast<element*>(part);
    if (a.norm.rows) {
      const float sum = stage_row(a.norm, a.width, row);
      if (lane == 0) squares[warp] = sum;
    } else {
      stage_row(a.x, a.width, row);
    }
    __syncthreads();
    x.load(row, inputs, a.k, ring.first, ring.run);
    __syncthreads();
  } else if (a.norm.rows) {
    const float sum = x.load(a.norm, a.k, ring.first, ring.run);
    if (lane == 0) squares[warp] = sum;
  } else {
    x.load(a.x, a.k, ring.first, ring.run);
  }
  ring.ask_rest();
  x.add_up();

  std::uint32_t filled = 0, buffer = 0;
  for (std::uint32_t t = ring.first_tile(); t < a.tiles; t += ring.step()) {
    float sums[2] = {};
    if (ring.run > 0) {
      const unsigned char* at = ring.wait();
      x.multiply(at, at + ring.bytes, ring.run, sums);
      ring.leave();
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sums[r] += __shfl_xor_sync(~0u, sums[r], 1);
      sums[r] += __shfl_xor_sync(~0u, sums[r], 2);
    }
    float* sums_of_batch = part + buffer * room;
    if (lane % 4 < 2)
      sums_of_batch[(filled * warps + warp) * tile_rows + lane / 4 + lane % 4 * cell_rows] =
          lane % 4 ? sums[1] : sums[0];
    if (++filled < batch && t + ring.step() < a.tiles) continue;
    __syncthreads();
    finish_tiles(a, sums_of_batch, squares, t - (filled - 1) * ring.step(), ring.step(), filled);
    filled = 0;
    buffer ^= 1;
  }
#endif
}

}  // namespace

void stream_single(device& d, const block_product& p) {
  // More stages were slower (docs/measurements/gpu.md, «Stages of a ring»).
  const bulk_args a = bulk_args_of(d, p, 2);
  const std::uint32_t run = divide_bulk(p.w.type, p.w.cols, p.kind).run;
  with_block_type(p.w.type, [&](auto of) {
    const auto kernel = run <= 2 ? single_kernel<of, 2> : single_kernel<of, 3>;
    allow_shared(d, kernel, bulk_block::shared_bytes);
    launch(d, kernel, bulk_grid(d, a), warps * 32, bulk_block::shared_bytes, a);
  });
}

}  // namespace weir::kernels::cuda
