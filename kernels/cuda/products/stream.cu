// Products of up to 8 rows on the Hopper path. The weights are read once, at the speed of the memory.
//
// A block computes tiles of 16 rows of the weights. The warps of a block divide K among them in pieces of 256
// columns. Each warp loads its pieces by bulk copies into a ring buffer of its own in shared memory; the
// warps synchronise only at the end of a tile, to add their sums. A warp keeps its part of x in registers.
// The loads of the first pieces begin before the kernel waits for the kernel that computes x. A norm in front
// of the product of one row is computed here as well (row_norm.h).
//
// Multiprocessors do not get the same share of the memory. So blocks claim most tiles of a large matrix, that
// of the logits, one after the other, and end together. Small matrices have too few tiles for that.
#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/products/products.h"
#include "kernels/cuda/products/put_output.h"
#include "kernels/cuda/products/row_norm.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = 8, piece = 256, rows_of_tile = 16, stages = 3, pieces_of_warp = 2;
// Rows of a piece are stored 64 bytes further apart than they are long: eight lanes that read two rows then
// use different banks.
constexpr int row_stride = piece * 2 + 64, stage_bytes = rows_of_tile * row_stride;
constexpr int ring_bytes = warps * stages * stage_bytes;
static_assert(rows_of_tile == stream_outputs && piece == stream_piece &&
              warps * pieces_of_warp * piece == stream_columns);

// The warps store their sums of a tile in shared memory, in two buffers that tiles use alternately. A warp
// that is already at the next tile thus does not overwrite sums that are still read.
constexpr int tile = rows_of_tile * 8, room = warps * tile;
constexpr std::size_t shared_bytes = ring_bytes + 2 * room * sizeof(float);

// x is [m, k], w is [n, k]; `tiles` is the number of tiles of w. `claimed` counts the claims of all blocks
// and is zero between kernels; null: all tiles are fixed.
struct stream_args {
  const element* w;
  const element* x;
  void* out;
  std::uint32_t n, k, m, tiles;
  unsigned* claimed;
  norm_before norm;  // in place of x
  activation gate;
};

// The row of the weights that is row `r` of tile `tile`. For gated a tile has eight rows of gate and the same
// eight rows of up.
template <product_out kind>
__device__ std::uint32_t row_of(const stream_args& a, std::uint32_t tile, std::uint32_t r) {
  if constexpr (kind == product_out::gated) return (r < 8 ? 0 : a.n / 2 - 8) + tile * 8 + r;
  return tile * rows_of_tile + r;
}

// The sum over the warps of element `e` of a tile: value e % 4 of lane e / 4 in the accumulators of mma().
[[maybe_unused]] __device__ __forceinline__ float sum_of_warps(const float* part, int e) {
  float sum = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) sum += part[w * tile + e];
  return sum;
}

// `squares` is [warps], as factor_of() takes them.
template <dtype type, product_out kind>
__device__ void finish_tile(const stream_args& a, const float* part, const float* squares,
                            std::uint32_t index) {
  const int e = static_cast<int>(threadIdx.x), lane = e / 4, j = e % 4;
  const std::uint32_t column = static_cast<std::uint32_t>(lane % 4 * 2 + j % 2);
  if (e >= tile || column >= a.m) return;
  const float factor = factor_of<warps>(a.norm, squares, a.k);
  if constexpr (kind == product_out::gated) {
    if (j >= 2) return;
    const float gate = factor * sum_of_warps(part, e), up = factor * sum_of_warps(part, e + 2);
    static_cast<element*>(a.out)[std::size_t{column} * (a.n / 2) + index * 8 + lane / 4] =
        element_of<type>(gated(a.gate, gate, up));
  } else {
    const float sum = factor * sum_of_warps(part, e);
    const std::size_t at = std::size_t{column} * a.n + index * rows_of_tile + lane / 4 + (j >= 2 ? 8 : 0);
    if constexpr (kind == product_out::element) static_cast<element*>(a.out)[at] = element_of<type>(sum);
    if constexpr (kind == product_out::f32) static_cast<float*>(a.out)[at] = sum;
  }
}

// Reads the row in front of the norm and puts the elements of piece c of the warp at part + c * room. Returns
// the sum of the squares of the warp's part of the row.
template <dtype type>
__device__ __forceinline__ float put_normed(const stream_args& a, float* part, int warp, int lane, int mine) {
  const float* const row = normed_row(a.norm, a.k);
  float squares = 0;
#pragma unroll
  for (int c = 0; c < pieces_of_warp; ++c) {
    if (c >= mine) continue;
    const int at = (warp + c * warps) * piece + lane * 8;
    std::uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float4 v = __ldcg(reinterpret_cast<const float4*>(row + at) + i),
                   w = __ldg(reinterpret_cast<const float4*>(a.norm.weight + at) + i);
      squares += squares_of(v);
      pairs[2 * i] = pair_of<type>(v.x * w.x, v.y * w.y);
      pairs[2 * i + 1] = pair_of<type>(v.z * w.z, v.w * w.w);
    }
    reinterpret_cast<uint4*>(part + c * room)[lane] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
  __syncwarp();
  return warp_sum(squares);
}

template <dtype type, product_out kind>
__global__ void __launch_bounds__(warps * 32, 1) stream_kernel(stream_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ __align__(8) std::uint64_t arrived[warps * stages];
  __shared__ float squares[warps];
  // How many tiles of a block are fixed where it claims the others. A claim is for the tile that comes so
  // many tiles later, since the warps ask for up to `stages` tiles ahead.
  constexpr std::uint32_t fixed_tiles = stages + 1;
  __shared__ std::uint32_t claims[2 * fixed_tiles];  // tile t of the block is in slot t % (2 * fixed_tiles)
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const std::uint32_t first = blockIdx.x, step = gridDim.x;
  const int pieces = static_cast<int>(a.k / piece);
  const int mine = pieces > warp + warps ? 2 : pieces > warp ? 1 : 0;
  const bool claiming = kind == product_out::f32 && a.claimed;
  // Tile t of the block; a number from a.tiles on where it has no such tile.
  const auto tile_of = [&](std::uint32_t t) {
    return claiming && t >= fixed_tiles ? claims[t % (2 * fixed_tiles)] : first + t * step;
  };

  unsigned char* ring = shared + warp * stages * stage_bytes;
  auto* part = reinterpret_cast<float*>(shared + ring_bytes);
  const std::uint32_t barriers = shared_address(arrived + warp * stages);
  if (lane == 0) {
    for (int i = 0; i < stages; ++i) barrier_init(barriers + 8 * i, 1);
    barrier_inits_end();
  }
  __syncwarp();

  // Begins to load the next piece of this warp into the next stage of its ring.
  std::uint32_t ask_tile = 0;
  int ask_stage = 0, ask_piece = 0;
  const auto ask = [&]() {
    const std::uint32_t index = mine > 0 ? tile_of(ask_tile) : a.tiles;
    if (index >= a.tiles) return;
    const std::uint32_t barrier = barriers + 8 * ask_stage;
    if (lane == 0) barrier_expect(barrier, rows_of_tile * piece * 2);
    __syncwarp();
    if (lane < rows_of_tile) {
      const element* from = a.w + std::size_t{row_of<kind>(a, index, lane)} * a.k +
                            static_cast<std::uint32_t>(warp + ask_piece * warps) * piece;
      copy_bulk(shared_address(ring + ask_stage * stage_bytes + lane * row_stride), from, piece * 2, barrier);
    }
    if (++ask_stage == stages) ask_stage = 0;
    if (++ask_piece == mine) {
      ask_piece = 0;
      ++ask_tile;
    }
  };
  for (int i = 0; i < stages; ++i) ask();
  // The weights of the norm are needed as soon as the row is there.
  if (a.norm.rows && lane / 8 < mine)
    prefetch(a.norm.weight + (warp + lane / 8 * warps) * piece + lane % 8 * 32);
  let_next_start();
  wait_for_previous();

  // This lane holds row lane / 4 of x, and of each 32 columns the eight from lane % 4 * 8 on. The order of k
  // within an instruction is free, as long as x and the weights have the same order.
  // The row behind a norm comes by way of the memory for this warp's sums.
  auto* const normed = reinterpret_cast<const uint4*>(part + warp * tile);
  if (a.norm.rows) {
    const float sum = put_normed<type>(a, part + warp * tile, warp, lane, mine);
    if (lane == 0) squares[warp] = sum;
  }
  uint4 x[pieces_of_warp][8];
  const std::uint32_t row = static_cast<std::uint32_t>(lane / 4);
#pragma unroll
  for (int c = 0; c < pieces_of_warp; ++c)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x[c][i] = make_uint4(0, 0, 0, 0);
      if (row >= a.m || c >= mine) continue;
      if (a.norm.rows)
        x[c][i] = normed[c * room / 4 + i * 4 + lane % 4];
      else
        x[c][i] = __ldcg(reinterpret_cast<const uint4*>(a.x + std::size_t{row} * a.k +
                                                        static_cast<std::uint32_t>(warp + c * warps) * piece +
                                                        i * 32 + lane % 4 * 8));
    }

  int stage = 0;
  std::uint32_t phase = 0;
  bool claims_more = claiming && threadIdx.x == 0;
  for (std::uint32_t t = 0, index; (index = tile_of(t)) < a.tiles; ++t) {
    float sums[4] = {};
    // The claims that find no tile are one a block; the last of all claims sets the counter to zero.
    std::uint32_t claim = a.tiles;
    if (claims_more)
      claim = fixed_tiles * step + atomicInc(a.claimed, a.tiles - (fixed_tiles - 1) * step - 1);
#pragma unroll
    for (int c = 0; c < pieces_of_warp; ++c) {
      if (c >= mine) continue;
      barrier_wait(barriers + 8 * stage, phase);
      const unsigned char* at = ring + stage * stage_bytes + lane / 4 * row_stride + lane % 4 * 16;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const uint4 low = *reinterpret_cast<const uint4*>(at + i * 64);
        const uint4 high = *reinterpret_cast<const uint4*>(at + 8 * row_stride + i * 64);
        mma<type>(sums, low.x, high.x, low.y, high.y, x[c][i].x, x[c][i].y);
        mma<type>(sums, low.z, high.z, low.w, high.w, x[c][i].z, x[c][i].w);
      }
      __syncwarp();
      if (++stage == stages) {
        stage = 0;
        phase ^= 1;
      }
      ask();
    }
    float* sums_of_tile = part + t % 2 * room;
    *reinterpret_cast<float4*>(sums_of_tile + warp * tile + lane * 4) =
        make_float4(sums[0], sums[1], sums[2], sums[3]);
    if (claiming && threadIdx.x == 0) claims[(t + fixed_tiles) % (2 * fixed_tiles)] = claim;
    claims_more &= claim < a.tiles;
    __syncthreads();
    finish_tile<type, kind>(a, sums_of_tile, squares, index);
  }
#endif
}

template <dtype type, product_out kind>
void start(device& d, const product& p, const norm_before& norm) {
  const auto blocks = static_cast<std::uint32_t>(d.multiprocessors);
  const std::uint32_t tiles = p.n / rows_of_tile;
  const bool claims = kind == product_out::f32 && tiles >= 32 * blocks;
  const stream_args a{static_cast<const element*>(p.w),
                      static_cast<const element*>(p.x),
                      p.out,
                      p.n,
                      p.k,
                      p.m,
                      tiles,
                      claims ? d.arrived : nullptr,
                      norm,
                      p.gate};
  const auto kernel = stream_kernel<type, kind>;
  allow_shared(d, kernel, shared_bytes);
  launch(d, kernel, dim3(blocks), warps * 32, shared_bytes, a);
}

}  // namespace

// add_f32 is left to stream_wide.cu.
void stream_product(device& d, const product& p, const norm_before& norm) {
  with_constants(p, [&](auto type, auto kind) {
    if constexpr (kind != product_out::add_f32) start<type, kind>(d, p, norm);
  });
}

}  // namespace weir::kernels::cuda
