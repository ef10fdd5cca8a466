// Both products of a mixture of few slots with plain weights, in one kernel of the Hopper path: the weights of a
// chosen expert are read in one stream, at the speed of the memory.
//
// A cluster of 16 blocks has one slot. Its warps compute tiles of 16 rows of the expert's matrices by the whole
// of K, each alone: first the tiles of the first product, then those of the second one. A warp loads stages of
// 256 columns by bulk copies into a ring buffer of its own in shared memory, across the ends of tiles and of
// products, so that weights of the second product are on their way while the first one is computed. Between the
// products the cluster synchronises, and every block reads what the others have made.
//
// The weighted sum of what a row's experts have made can be added to the stream by the same kernel: of the warps
// that have a tile of a row's slots, the last one adds it up. Slots are added in their order.
#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/experts/put_expert.h"
#include "kernels/cuda/products/stream_tile.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t blocks = 16, warps = 8, stages = 2, columns = 256, chunk = 32, tile_rows = 16;
// Rows of a stage are stored 64 bytes further apart than they are long: eight lanes that read two rows then
// use different banks.
constexpr std::uint32_t row_stride = columns * 2 + 64, stage_bytes = tile_rows * row_stride;
constexpr std::uint32_t ring_bytes = warps * stages * stage_bytes;

struct both_args {
  expert_args products[2];
  mixture_sum sum;
  std::uint32_t* added;  // counters
  std::uint32_t tiles[2];  // of a slot
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// What a warp loads: its ring, and where it is in its tiles.
struct stage_loader {
  const both_args& b;
  unsigned char* memory;  // of the ring
  std::uint32_t barriers, lane, first;
  std::int32_t expert;
  std::uint32_t tile = first, product = 0, stage = 0, column = 0;
  const element* row = nullptr;  // the lane's row of the tile

  // Begins to load the next stage, if there is one.
  __device__ __forceinline__ void ask() {
    if (product == 0 && tile >= b.tiles[0]) product = 1, tile = first;
    if (tile >= b.tiles[product]) return;
    const expert_args& a = b.products[product];
    if (column == 0)
      row = reinterpret_cast<const element*>(a.matrix_of(expert)) +
            std::size_t{tile_row(a, tile, lane % tile_rows)} * a.k;
    const std::uint32_t bytes = min(columns, a.k - column) * sizeof(element), barrier = barriers + 8 * stage;
    if (lane == 0) barrier_expect(barrier, tile_rows * bytes);
    __syncwarp();
    if (lane < tile_rows)
      copy_bulk(shared_address(memory + stage * stage_bytes + lane * row_stride), row + column, bytes, barrier);
    stage = (stage + 1) % stages;
    column += columns;
    if (column < a.k) return;
    column = 0;
    tile += blocks * warps;
  }
};

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
    std::uint32_t* const count = b.added + row * b.tiles[1] + tile;
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

// The tiles of one product that the calling warp has. `x` is the slot's row of x in shared memory. `at` is where
// the ring is read.
template <dtype type>
__device__ __forceinline__ void multiply(const both_args& b, std::uint32_t product, std::int32_t slot,
                                         const uint4* x, stage_loader& loads, turn_of_ring<stages>& at) {
  const expert_args& a = b.products[product];
  const std::uint32_t lane = loads.lane;
  for (std::uint32_t tile = loads.first; tile < b.tiles[product]; tile += blocks * warps) {
    float sums[2][4] = {};
    for (std::uint32_t column = 0; column < a.k; column += columns, at.next()) {
      barrier_wait(loads.barriers + 8 * at.stage, at.phase);
      const unsigned char* from = loads.memory + at.stage * stage_bytes + lane / 4 * row_stride + lane % 4 * 16;
#pragma unroll
      for (std::uint32_t i = 0; i < columns / chunk; ++i) {
        if (column + i * chunk >= a.k) break;
        const uint4 low = *reinterpret_cast<const uint4*>(from + i * 64);
        const uint4 high = *reinterpret_cast<const uint4*>(from + 8 * row_stride + i * 64);
        // There is one row of x: only the lanes of row 0 have it.
        const uint4 v = lane < 4 ? x[(column + i * chunk) / 8 + lane] : make_uint4(0, 0, 0, 0);
        mma<type>(sums[0], low.x, high.x, low.y, high.y, v.x, v.y);
        mma<type>(sums[1], low.z, high.z, low.w, high.w, v.z, v.w);
      }
      __syncwarp();
      loads.ask();
    }
    if (lane % 4 == 0)
      put_tile<type>(a, loads.expert, slot, tile, sums[0][0] + sums[1][0], sums[0][2] + sums[1][2]);
    if (product == 1 && b.sum.x) add_tile(b, static_cast<std::uint32_t>(slot), tile, lane);
    __syncwarp();  // all lanes are at the next stage together
  }
}

// Loads a row of x, by all threads of the block.
__device__ __forceinline__ void load_row(uint4* to, const expert_args& a, std::int32_t slot) {
  const auto* from = reinterpret_cast<const uint4*>(a.row_of(slot));
  for (std::uint32_t i = threadIdx.x; i < a.k / 8; i += warps * 32) to[i] = __ldcg(from + i);
  __syncthreads();
}

#endif

template <dtype type>
__global__ void __launch_bounds__(warps * 32, 1) both_kernel(const __grid_constant__ both_args b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(128) unsigned char shared[];  // rings; a row of x of each product
  __shared__ __align__(8) std::uint64_t arrived[warps * stages];
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t barriers = shared_address(arrived + warp * stages);
  if (lane == 0) {
    for (std::uint32_t i = 0; i < stages; ++i) barrier_init(barriers + 8 * i, 1);
    barrier_inits_end();
  }
  __syncwarp();
  wait_for_previous();
  let_next_start();
  const auto slot = static_cast<std::int32_t>(blockIdx.y);
  const std::int32_t expert = __ldcg(b.products[0].ids + slot);
  if (expert < 0) return;  // the whole cluster
  stage_loader loads{b, shared + warp * stages * stage_bytes, barriers, lane, warp * blocks + blockIdx.x, expert};
  for (std::uint32_t i = 0; i < stages; ++i) loads.ask();
  auto* const x = reinterpret_cast<uint4*>(shared + ring_bytes);
  load_row(x, b.products[0], slot);
  turn_of_ring<stages> at;
  multiply<type>(b, 0, slot, x, loads, at);
  cluster_barrier();
  uint4* const inner = x + b.products[0].k / 8;
  load_row(inner, b.products[1], slot);
  multiply<type>(b, 1, slot, inner, loads, at);
#endif
}

std::uint32_t tiles_of(const expert_args& a) { return (a.n + tile_rows - 1) / tile_rows; }

std::size_t shared_bytes(const expert_args& in, const expert_args& out) {
  return ring_bytes + (std::size_t{in.k} + out.k) * sizeof(element);
}

constexpr std::size_t room_of_block = hopper_shared - 1024;  // barriers take less

// Fewer slots would leave too many multiprocessors without work.
constexpr std::uint32_t least_slots = 6;

// The clusters that the device runs at once; 0: none as large. Some of its multiprocessors may be switched off.
template <class F>
std::uint32_t clusters_at_once(device& d, F* kernel, std::size_t shared) {
  if (!allow_shared(d, kernel, room_of_block) || !allow_large_clusters(d, kernel)) return 0;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {blocks, 1, 1};
  cudaLaunchConfig_t how{};
  how.gridDim = dim3(blocks);
  how.blockDim = dim3(warps * 32);
  how.dynamicSmemBytes = shared;
  how.attrs = &cluster;
  how.numAttrs = 1;
  int count = 0;
  if (!WEIR_CUDA(d, cudaOccupancyMaxActiveClusters(&count, kernel, &how))) return 0;
  return static_cast<std::uint32_t>(count);
}

auto* kernel_of(dtype type) { return type == dtype::f16 ? both_kernel<dtype::f16> : both_kernel<dtype::bf16>; }

}  // namespace

bool can_stream_both(device& d, dtype type, const expert_args& in, const expert_args& out) {
  return d.path == code_path::hopper && in.slots >= least_slots && in.k % chunk == 0 && out.k % chunk == 0 &&
         shared_bytes(in, out) <= room_of_block &&
         clusters_at_once(d, kernel_of(type), shared_bytes(in, out)) >= least_slots;
}

void expert_stream_both(device& d, dtype type, const expert_args& in, const expert_args& out,
                        std::uint32_t* added, const mixture_sum& sum) {
  launch_clusters(d, kernel_of(type), dim3(blocks, in.slots), dim3(blocks), warps * 32, shared_bytes(in, out),
                  both_args{{in, out}, sum, added, {tiles_of(in), tiles_of(out)}});
}

}  // namespace weir::kernels::cuda
