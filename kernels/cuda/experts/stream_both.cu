// Both products of a mixture of few slots with plain weights, in one kernel of the Hopper path: the weights of
// all chosen experts are read in one stream, at the speed of the memory.
//
// A piece of work is a tile of 16 rows of a slot's expert, by the whole of K. Those of the first product come
// first. Warps take turns (turns_of): each takes one piece of work after the other, and computes it alone. A warp
// loads stages of 256 columns by bulk copies into a ring buffer of its own in shared memory, across the ends of
// its pieces of work, so that weights of the second product are on their way while the first one is computed.
// A tile of the second product needs all outputs of the first one of its slot: its warp waits until the tiles of
// that slot have been counted.
//
// No warp waits for ever, whichever blocks the device runs: turns are taken in order, so that work that a warp
// waits for was taken before by another one, which waits for nothing.
#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/experts/put_expert.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t warps = 8, stages = 2, columns = 256, chunk = 32, tile_rows = 16;
// Rows of a stage are stored 64 bytes further apart than they are long: eight lanes that read two rows then
// use different banks.
constexpr std::uint32_t row_stride = columns * 2 + 64, stage_bytes = tile_rows * row_stride;
constexpr std::uint32_t ring_bytes = warps * stages * stage_bytes;
constexpr std::uint32_t none = ~0u;

struct both_args {
  expert_args products[2];
  expert_turns turns;
  mixture_sum sum;
  std::uint32_t slots, tiles[2], longest;  // tiles: of a slot; longest: K of the product that has more
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A piece of work.
struct tile_work {
  std::uint32_t product, slot, tile;
  __device__ __forceinline__ tile_work(const both_args& b, std::uint32_t index) {
    const std::uint32_t first = b.tiles[0] * b.slots;
    product = index >= first;
    if (product) index -= first;
    slot = index / b.tiles[product];
    tile = index % b.tiles[product];
  }
};

__device__ __forceinline__ std::uint32_t take_turn(const both_args& b, std::uint32_t lane) {
  std::uint32_t turn = 0;
  if (lane == 0) turn = atomicAdd(b.turns.taken, 1u);
  return turn;  // lane 0 has it
}

// What a warp loads: its ring, and where it is in which piece of work.
struct stage_loader {
  const both_args& b;
  unsigned char* memory;       // of the ring
  std::uint32_t* work_of;      // [stages] in shared memory: the piece of work of each stage; none
  std::uint32_t barriers, lane, all;
  std::uint32_t work, next = none, stage = 0, column = 0;  // next: lane 0 has it; none: not taken yet
  const element* row = nullptr;                            // the lane's row of the tile
  std::uint32_t k = 0;

  __device__ __forceinline__ void take_next() {
    if (__shfl_sync(~0u, next, 0) == none) next = take_turn(b, lane);
  }

  // Goes to the next piece of work that a slot with an expert has. False: there is none.
  __device__ __forceinline__ bool begin_work() {
    for (;; take_next(), work = __shfl_sync(~0u, next, 0), next = none) {
      if (work >= all) return false;
      const tile_work t(b, work);
      const expert_args& a = b.products[t.product];
      const std::int32_t expert = __ldcg(a.ids + t.slot);
      if (expert < 0) continue;
      row = reinterpret_cast<const element*>(a.matrix_of(expert)) +
            std::size_t{tile_row(a, t.tile, lane % tile_rows)} * a.k;
      k = a.k;
      return true;
    }
  }

  // Begins to load the next stage.
  __device__ __forceinline__ void ask() {
    if (column == 0 && !begin_work()) {
      if (lane == 0) work_of[stage] = none;
    } else {
      const std::uint32_t bytes = min(columns, k - column) * sizeof(element), barrier = barriers + 8 * stage;
      if (lane == 0) {
        work_of[stage] = work;
        barrier_expect(barrier, tile_rows * bytes);
      }
      __syncwarp();
      if (lane < tile_rows)
        copy_bulk(shared_address(memory + stage * stage_bytes + lane * row_stride), row + column, bytes, barrier);
      column += columns;
      if (column >= k) {
        column = 0;
        take_next();
        work = __shfl_sync(~0u, next, 0);
        next = none;
      }
    }
    stage = (stage + 1) % stages;
    __syncwarp();
  }
};

// Waits until the outputs of the first product of a slot are all there.
__device__ __forceinline__ void wait_for_slot(const both_args& b, std::uint32_t slot) {
  std::uint32_t done = 0;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(b.turns.done + slot) : "memory");
  } while (done < b.tiles[0]);
}

// Counts a tile of a slot's first product, whose outputs the lanes have written.
__device__ __forceinline__ void count_tile(const both_args& b, std::uint32_t slot, std::uint32_t lane) {
  __syncwarp();
  if (lane != 0) return;
  __threadfence();
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(b.turns.done + slot) : "memory");
}

// Writes what a lane has of a tile: the sums of row lane / 4 and of the row eight behind it, which with a gate
// is that of up.
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

// Counts a tile of a slot's second product, whose outputs the lanes have written. The warp with the last one of
// those of a row adds them up, and to the stream.
__device__ __forceinline__ void add_tile(const both_args& b, std::uint32_t slot, std::uint32_t tile,
                                         std::uint32_t lane) {
  __syncwarp();
  const std::uint32_t row = slot / b.sum.chosen, n = b.products[1].n;
  std::uint32_t before = 0;
  if (lane == 0) {
    std::uint32_t* const count = b.turns.added + row * b.tiles[1] + tile;
    __threadfence();
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
    if (before + 1 == b.sum.chosen) *count = 0;
  }
  if (__shfl_sync(~0u, before, 0) + 1 != b.sum.chosen) return;
  const std::uint32_t i = tile * tile_rows + lane;
  if (lane >= tile_rows || i >= n) return;
  const float* made = static_cast<const float*>(b.products[1].out);
  float sum = 0;
#pragma unroll 4
  for (std::size_t s = std::size_t{row} * b.sum.chosen; s < std::size_t{row + 1} * b.sum.chosen; ++s)
    sum = __fmaf_rn(__ldcg(made + s * n + i), __ldcg(b.sum.weights + s), sum);
  float* const x = b.sum.x + std::size_t{row} * n + i;
  *x = __ldcg(x) + sum;
}

// The last block to end makes the turns ready for the next launch. One thread calls it.
__device__ __forceinline__ void end_turns(const both_args& b) {
  __threadfence();
  if (atomicAdd(b.turns.ended, 1u) + 1 != gridDim.x) return;
  *b.turns.taken = 0;
  *b.turns.ended = 0;
  for (std::uint32_t slot = 0; slot < b.slots; ++slot) b.turns.done[slot] = 0;
}

#endif

template <dtype type>
__global__ void __launch_bounds__(warps * 32, 1) both_kernel(const __grid_constant__ both_args b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) unsigned char shared[];  // rings; [warps, longest] rows of x
  __shared__ __align__(8) std::uint64_t arrived[warps * stages];
  __shared__ std::uint32_t work_of[warps * stages], first_turn;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t barriers = shared_address(arrived + warp * stages);
  if (lane == 0) {
    for (std::uint32_t i = 0; i < stages; ++i) barrier_init(barriers + 8 * i, 1);
    barrier_inits_end();
  }
  wait_for_previous();
  let_next_start();
  if (threadIdx.x == 0) first_turn = atomicAdd(b.turns.taken, warps);
  __syncthreads();
  const std::uint32_t all = (b.tiles[0] + b.tiles[1]) * b.slots;
  stage_loader loads{b,    shared + warp * stages * stage_bytes, work_of + warp * stages, barriers, lane, all,
                     first_turn + warp};
  for (std::uint32_t i = 0; i < stages; ++i) loads.ask();

  auto* const x = reinterpret_cast<uint4*>(shared + ring_bytes + std::size_t{warp} * b.longest * sizeof(element));
  const element* there = nullptr;  // the row of x that is in shared memory
  std::uint32_t stage = 0, phase = 0, column = 0;
  float sums[2][4] = {};
  while (true) {
    const std::uint32_t work = loads.work_of[stage];
    if (work == none) break;
    const tile_work t(b, work);
    const expert_args& a = b.products[t.product];
    const auto slot = static_cast<std::int32_t>(t.slot);
    if (column == 0 && a.row_of(slot) != there) {
      if (t.product == 1) wait_for_slot(b, t.slot);
      there = a.row_of(slot);
      const auto* from = reinterpret_cast<const uint4*>(there);
      for (std::uint32_t i = lane; i < a.k / 8; i += 32) x[i] = __ldcg(from + i);
      __syncwarp();
    }
    barrier_wait(barriers + 8 * stage, phase);
    const unsigned char* at = loads.memory + stage * stage_bytes + lane / 4 * row_stride + lane % 4 * 16;
#pragma unroll
    for (std::uint32_t i = 0; i < columns / chunk; ++i) {
      if (column + i * chunk >= a.k) break;
      const uint4 low = *reinterpret_cast<const uint4*>(at + i * 64);
      const uint4 high = *reinterpret_cast<const uint4*>(at + 8 * row_stride + i * 64);
      // There is one row of x: only the lanes of row 0 have it.
      const uint4 v = lane < 4 ? x[(column + i * chunk) / 8 + lane] : make_uint4(0, 0, 0, 0);
      mma<type>(sums[0], low.x, high.x, low.y, high.y, v.x, v.y);
      mma<type>(sums[1], low.z, high.z, low.w, high.w, v.z, v.w);
    }
    __syncwarp();
    loads.ask();
    loads.take_next();
    if (++stage == stages) {
      stage = 0;
      phase ^= 1;
    }
    column += columns;
    if (column < a.k) continue;
    column = 0;
    if (lane % 4 == 0)
      put_tile<type>(a, __ldcg(a.ids + slot), slot, t.tile, sums[0][0] + sums[1][0], sums[0][2] + sums[1][2]);
    if (t.product == 0)
      count_tile(b, t.slot, lane);
    else if (b.sum.x)
      add_tile(b, t.slot, t.tile, lane);
    __syncwarp();  // all lanes are at the next stage together
#pragma unroll
    for (auto& sum : sums)
#pragma unroll
      for (float& s : sum) s = 0;
  }
  __syncthreads();
  if (threadIdx.x == 0) end_turns(b);
#endif
}

std::uint32_t tiles_of(const expert_args& a) { return (a.n + tile_rows - 1) / tile_rows; }

std::size_t shared_bytes(std::uint32_t k) { return ring_bytes + std::size_t{warps} * k * sizeof(element); }

constexpr std::size_t most_shared = hopper_shared - 1024;  // of barriers and turns there is less

}  // namespace

bool can_stream_both(const device& d, const expert_args& in, const expert_args& out) {
  return d.path == code_path::hopper && in.slots <= most_single_slots && in.k % chunk == 0 &&
         out.k % chunk == 0 && shared_bytes(std::max(in.k, out.k)) <= most_shared;
}

void expert_stream_both(device& d, dtype type, const expert_args& in, const expert_args& out,
                        const expert_turns& turns, const mixture_sum& sum) {
  const auto kernel = type == dtype::f16 ? both_kernel<dtype::f16> : both_kernel<dtype::bf16>;
  allow_shared(d, kernel, most_shared);
  const both_args b{{in, out}, turns, sum, in.slots, {tiles_of(in), tiles_of(out)}, std::max(in.k, out.k)};
  const std::uint32_t blocks = ((b.tiles[0] + b.tiles[1]) * b.slots + warps - 1) / warps;
  launch(d, kernel, dim3(std::min(static_cast<std::uint32_t>(d.multiprocessors), blocks)), warps * 32,
         shared_bytes(b.longest), b);
}

}  // namespace weir::kernels::cuda
