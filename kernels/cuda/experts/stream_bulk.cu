// Products of few slots with plain weights on the Hopper path. Each slot's weights are read at the speed of
// the memory.
//
// A warp computes tiles of 16 rows of a slot's expert, each alone and over the whole of K: no sums are added
// among warps. The warp loads pieces of 256 columns by bulk copies into a ring buffer of its own in shared
// memory, across the ends of tiles. Neighbouring tiles go to different multiprocessors. Where the experts of
// slots are known early (expert_product::ids_settled), the first pieces are loaded before the kernel in front
// has ended.
//
// The weighted sum of what a row's experts have made can be added to the stream by the same kernel: of the
// warps that have the same tile of a row's slots, the last one adds it up. Slots are added in their order.
#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/experts/put_expert.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t warps = 8, stages = 2, piece = 256, chunk = 32, rows_of_tile = 16;
// Rows of a piece are stored 64 bytes further apart than they are long: eight lanes that read two rows then
// use different banks.
constexpr std::uint32_t row_stride = piece * 2 + 64, stage_bytes = rows_of_tile * row_stride;
constexpr std::uint32_t ring_bytes = warps * stages * stage_bytes;
constexpr std::size_t most_shared = hopper_shared - warps * stages * sizeof(std::uint64_t);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The ring of a warp, and which pieces of which tiles are asked for.
struct ring {
  const expert_args& a;
  unsigned char* memory;
  std::uint32_t barriers, lane, tiles, step;  // tiles: of a slot; step: from one tile of the warp to the next
  std::uint32_t tile, stage = 0, column = 0;
  const element* row = nullptr;  // the lane's row of the tile

  __device__ __forceinline__ std::int32_t expert_of(std::uint32_t t) const {
    return __ldcg(a.ids + t / tiles);
  }

  // Begins to load the next piece into the next stage.
  __device__ __forceinline__ void ask() {
    if (column == 0) {
      while (tile < tiles * a.slots && expert_of(tile) < 0) tile += step;
      if (tile >= tiles * a.slots) return;
      row = reinterpret_cast<const element*>(a.matrix_of(expert_of(tile))) +
            std::size_t{tile_row(a, tile % tiles, lane % rows_of_tile)} * a.k;
    }
    const std::uint32_t bytes = min(piece, a.k - column) * sizeof(element), barrier = barriers + 8 * stage;
    if (lane == 0) barrier_expect(barrier, rows_of_tile * bytes);
    __syncwarp();
    if (lane < rows_of_tile)
      copy_bulk(shared_address(memory + stage * stage_bytes + lane * row_stride), row + column, bytes,
                barrier);
    stage = (stage + 1) % stages;
    column += piece;
    if (column >= a.k) {
      column = 0;
      tile += step;
    }
  }
};

// Writes what a lane has of a tile: the sums of row lane / 4 and of the row eight behind it, which with a
// gate is that of up.
template <dtype type>
__device__ __forceinline__ void put_tile(const expert_args& a, std::int32_t expert, std::int32_t slot,
                                         std::uint32_t tile, float low, float high) {
  const std::uint32_t row = threadIdx.x % 32 / 4;
  if (a.kind == expert_out::gated) {
    const std::uint32_t i = tile * 8 + row;
    if (i < a.n / 2) put_one<type>(a, expert, slot, i, low, high);
  } else {
    const std::uint32_t i = tile * 16 + row;
    if (i < a.n) put_one<type>(a, expert, slot, i, low, 0);
    if (i + 8 < a.n) put_one<type>(a, expert, slot, i + 8, high, 0);
  }
}

// Counts tile `tile` of a slot, whose outputs the lanes have written. The warp with the last slot of a row
// adds up those outputs, and to the stream.
__device__ __forceinline__ void add_tile(const expert_args& a, const mixture_sum& sum, std::uint32_t* counts,
                                         std::uint32_t slot, std::uint32_t tile, std::uint32_t lane) {
  __syncwarp();
  const std::uint32_t row = slot / sum.chosen;
  std::uint32_t before = 0;
  if (lane == 0) {
    std::uint32_t* const count = counts + row * ((a.n + 15) / 16) + tile;
    __threadfence();
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
    if (before + 1 == sum.chosen) *count = 0;
  }
  if (__shfl_sync(~0u, before, 0) + 1 != sum.chosen) return;
  const std::uint32_t i = tile * rows_of_tile + lane;
  if (lane >= rows_of_tile || i >= a.n) return;
  const float* made = static_cast<const float*>(a.out);
  float all = 0;
#pragma unroll 8
  for (std::size_t s = std::size_t{row} * sum.chosen; s < std::size_t{row + 1} * sum.chosen; ++s)
    all = __fmaf_rn(__ldcg(made + s * a.n + i), __ldcg(sum.weights + s), all);
  float* const x = sum.x + std::size_t{row} * a.n + i;
  *x = __ldcg(x) + all;
}

#endif

template <dtype type>
__global__ void __launch_bounds__(warps * 32, 1)
    bulk_kernel(const expert_args a, const mixture_sum sum, std::uint32_t* const counts) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) unsigned char shared[];  // rings; [warps, k] rows of x
  __shared__ __align__(8) std::uint64_t arrived[warps * stages];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t barriers = shared_address(arrived + warp * stages);
  if (lane == 0) {
    for (std::uint32_t i = 0; i < stages; ++i) barrier_init(barriers + 8 * i, 1);
    barrier_inits_end();
  }
  __syncwarp();
  if (!a.ids_settled) wait_for_previous();
  const std::uint32_t tiles = (a.n + 15) / 16, step = gridDim.x * warps,
                      first = warp * gridDim.x + blockIdx.x;
  ring pieces{a, shared + warp * stages * stage_bytes, barriers, lane, tiles, step, first};
  for (std::uint32_t i = 0; i < stages; ++i) pieces.ask();
  if (a.ids_settled) wait_for_previous();
  let_next_start();

  auto* const x = reinterpret_cast<uint4*>(shared + ring_bytes + std::size_t{warp} * a.k * sizeof(element));
  std::uint32_t there = ~0u, stage = 0, phase = 0;  // there: the row of x in shared memory
  for (std::uint32_t t = first; t < tiles * a.slots; t += step) {
    const std::uint32_t slot = t / tiles;
    const std::int32_t expert = __ldcg(a.ids + slot);
    if (expert < 0) continue;
    if (slot / a.share != there) {
      there = slot / a.share;
      const auto* from = reinterpret_cast<const uint4*>(a.row_of(static_cast<std::int32_t>(slot)));
      for (std::uint32_t i = lane; i < a.k / 8; i += 32) x[i] = __ldcg(from + i);
      __syncwarp();
    }
    float sums[2][4] = {};
    for (std::uint32_t column = 0; column < a.k; column += piece) {
      barrier_wait(barriers + 8 * stage, phase);
      const unsigned char* at = pieces.memory + stage * stage_bytes + lane / 4 * row_stride + lane % 4 * 16;
#pragma unroll
      for (std::uint32_t i = 0; i < piece / chunk; ++i) {
        if (column + i * chunk >= a.k) break;
        const uint4 low = *reinterpret_cast<const uint4*>(at + i * 64);
        const uint4 high = *reinterpret_cast<const uint4*>(at + 8 * row_stride + i * 64);
        // There is one row of x: only the lanes of row 0 have it.
        const uint4 v = lane < 4 ? x[(column + i * chunk) / 8 + lane] : make_uint4(0, 0, 0, 0);
        mma<type>(sums[0], low.x, high.x, low.y, high.y, v.x, v.y);
        mma<type>(sums[1], low.z, high.z, low.w, high.w, v.z, v.w);
      }
      __syncwarp();
      if (++stage == stages) {
        stage = 0;
        phase ^= 1;
      }
      pieces.ask();
    }
    if (lane % 4 == 0)
      put_tile<type>(a, expert, static_cast<std::int32_t>(slot), t % tiles, sums[0][0] + sums[1][0],
                     sums[0][2] + sums[1][2]);
    if (sum.x) add_tile(a, sum, counts, slot, t % tiles, lane);
    __syncwarp();  // all lanes are at the next piece together
  }
#endif
}

std::size_t shared_bytes(std::uint32_t k) { return ring_bytes + std::size_t{warps} * k * sizeof(element); }

}  // namespace

bool can_stream_bulk(const device& d, const expert_args& a) {
  return d.path == code_path::hopper && !d.deterministic && a.k % chunk == 0 &&
         shared_bytes(a.k) <= most_shared;
}

void expert_stream_bulk(device& d, dtype type, const expert_args& a, const mixture_sum& sum,
                        std::uint32_t* counts) {
  const auto kernel = type == dtype::f16 ? bulk_kernel<dtype::f16> : bulk_kernel<dtype::bf16>;
  allow_shared(d, kernel, most_shared);
  // Each block has tiles, before any block has more than one of its warps busy.
  const std::uint32_t tiles = (a.n + 15) / 16 * a.slots;
  launch(d, kernel, dim3(std::min(static_cast<std::uint32_t>(d.multiprocessors), tiles)), warps * 32,
         shared_bytes(a.k), a, sum, counts);
}

}  // namespace weir::kernels::cuda
