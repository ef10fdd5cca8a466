// Products of many slots with quantised weights. A block computes a tile of slots, which have one expert, by
// 128 rows of the expert's matrix, as in products/tile_blocks.cu: cells go from memory into the registers of
// the warps that multiply them, where they are rounded to bf16. The rows of x are gathered by the slots'
// numbers on their way to shared memory. A block sums all of K.
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/experts/put_expert.h"
#include "kernels/cuda/products/block_tile.h"
#include "kernels/cuda/products/shared_tile.h"

namespace weir::kernels::cuda {
namespace {

constexpr int warps = 8, threads = warps * 32, stages = 4;
constexpr std::uint32_t tile_outputs = warps * 16;

// The rows of x that a thread copies: one unit of 16 bytes of each. Slots behind the last one of the tile
// repeat it.
template <int wide>
struct sources {
  static constexpr int pass = threads / tile_row_units, count = wide / pass;
  static_assert(wide % pass == 0);
  const element* x[count];
  std::uint32_t row, unit;

  __device__ __forceinline__ sources(const expert_args& a, const expert_tile& t)
      : row(threadIdx.x / tile_row_units), unit(threadIdx.x % tile_row_units) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      x[i] = a.row_of(__ldcg(a.order + t.first + min(static_cast<int>(row) + i * pass, t.count - 1)));
  }

  // Begins to copy columns 128 * cell on to a stage.
  __device__ __forceinline__ void copy(std::uint32_t stage, std::uint32_t cell, std::uint32_t k) const {
    const std::uint32_t column = cell * cell_columns + unit * 8;
    const bool there = column < k;
#pragma unroll
    for (int i = 0; i < count; ++i)
      copy_or_zeros(stage + tile_place(row + i * pass, unit) * 16, x[i] + (there ? column : 0), there);
  }
};

// Writes the warp's sums: outputs of tile `tile` of 16 rows of the weights.
template <int units>
__device__ __forceinline__ void put_tile(const expert_args& a, const expert_tile& t, std::uint32_t tile,
                                         const float (&sums)[units][4]) {
  const std::uint32_t lane = threadIdx.x % 32;
  const bool gated = a.kind == expert_out::gated;
  const std::uint32_t first = tile * (gated ? 8 : 16) + lane / 4;
#pragma unroll
  for (int u = 0; u < units; ++u)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = u * 8 + static_cast<int>(lane % 4) * 2 + i;
      if (row >= t.count) continue;
      const std::int32_t slot = __ldcg(a.order + t.first + row);
      const float v = sums[u][i], w = sums[u][2 + i];
      if (gated) {
        if (first < a.n / 2) put_one<dtype::bf16>(a, t.expert, slot, first, v, w);
      } else {
        if (first < a.n) put_one<dtype::bf16>(a, t.expert, slot, first, v, 0);
        if (first + 8 < a.n) put_one<dtype::bf16>(a, t.expert, slot, first + 8, w, 0);
      }
    }
}

template <dtype type, int wide>
__global__ void __launch_bounds__(threads, 2) tile_kernel(const expert_args a) {
  constexpr int units = wide / 8;
  constexpr std::uint32_t stage_bytes = wide * tile_row_units * 16;
  extern __shared__ __align__(128) unsigned char shared[];
  let_next_start();
  wait_for_previous();
  const expert_tile t = tile_of(a);
  if (t.count == 0) return;
  const std::uint32_t base = shared_address(shared), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t cells = (a.k + cell_columns - 1) / cell_columns;
  const std::size_t across = std::size_t{cells} * cell_form(type).bytes;
  const std::uint32_t tile = blockIdx.y * warps + warp, last = (a.n + cell_rows - 1) / cell_rows - 1;
  const unsigned char* const matrix = a.matrix_of(t.expert);
  const unsigned char* const w[2] = {matrix + min(tile_row(a, tile, 0) / cell_rows, last) * across,
                                     matrix + min(tile_row(a, tile, 8) / cell_rows, last) * across};
  tile_weights<type> one, other;
  one.load(w, 0, lane);
  const sources<wide> from(a, t);
  std::uint32_t asked = 0;
  const auto ask = [&] {
    if (asked < cells) from.copy(base + asked % stages * stage_bytes, asked, a.k);
    ++asked;
    copies_end_group();
  };
#pragma unroll
  for (int i = 0; i < stages - 1; ++i) ask();
  float sums[units][4] = {};
  const auto step = [&](tile_weights<type>& now, tile_weights<type>& next, std::uint32_t at) {
    if (at + 1 < cells) next.load(w, at + 1, lane);
    copies_wait<stages - 2>();
    __syncthreads();  // all see the stage, and all have read the one before it
    ask();
    multiply_tile<type, units>(now, shared + at % stages * stage_bytes, sums);
  };
  for (std::uint32_t at = 0; at < cells; at += 2) {
    step(one, other, at);
    if (at + 1 < cells) step(other, one, at + 1);
  }
  put_tile<units>(a, t, tile, sums);
}

template <dtype type, int wide>
void start(device& d, const expert_args& a, const expert_division& by) {
  constexpr std::size_t bytes = std::size_t{stages} * wide * tile_row_units * 16;
  static_assert(bytes <= general_shared);
  const auto kernel = tile_kernel<type, wide>;
  allow_shared(d, kernel, bytes);
  launch(d, kernel, dim3(by.tiles, (a.n + tile_outputs - 1) / tile_outputs), threads, bytes, a);
}

}  // namespace

void expert_tile_blocks(device& d, dtype type, const expert_args& a, const expert_division& by) {
  with_block_type(type, [&](auto of) {
    if (by.tile_slots == small_tile_slots) return start<of, small_tile_slots>(d, a, by);
    start<of, tile_slots>(d, a, by);
  });
}

}  // namespace weir::kernels::cuda
