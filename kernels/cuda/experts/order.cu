// Puts slots in the order of their experts, and makes the list of tiles. One block: a step has some ten
// thousand slots at most.
//
// The order is stable: slots of one expert keep theirs. Each warp has a run of neighbouring slots. It counts
// those of each expert; then the counts of the warps in front of it, and of the experts in front, say where
// its slots of an expert begin; and it goes through its run again to put them there.
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/experts/experts.h"

namespace weir::kernels::cuda {
namespace {

constexpr std::uint32_t warps = 16, threads = warps * 32;

struct order_args {
  const std::int32_t* ids;
  std::int32_t* order;
  expert_tile* tiles;
  std::int32_t* count;
  std::uint32_t slots, experts, tile_slots;
};

// Calls f(expert, peers, i) for the slots of the warp's run, 32 at a time: `peers` are the lanes whose slots
// have the same expert, `i` the lane's slot. Lanes without one have the expert -1.
template <class F>
__device__ __forceinline__ void each_slot(const order_args& a, const F& f) {
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t run = (a.slots + warps * 32 - 1) / (warps * 32) * 32;
  const std::uint32_t begin = min(warp * run, a.slots), end = min(begin + run, a.slots);
  constexpr std::uint32_t early = 8;  // reads that are under way at once
  for (std::uint32_t at = begin; at < end; at += early * 32) {
    std::int32_t experts[early];
#pragma unroll
    for (std::uint32_t j = 0; j < early; ++j) {
      const std::uint32_t i = at + j * 32 + lane;
      experts[j] = i < end ? __ldcg(a.ids + i) : -1;
    }
#pragma unroll
    for (std::uint32_t j = 0; j < early; ++j) {
      if (at + j * 32 >= end) break;
      f(experts[j], __match_any_sync(~0u, experts[j]), at + j * 32 + lane);
      __syncwarp();
    }
  }
}

// The sum of `v` over the lanes in front of this one.
__device__ __forceinline__ std::int32_t sum_before(std::int32_t v, std::uint32_t lane) {
  std::int32_t sum = v;
#pragma unroll
  for (std::uint32_t far = 1; far < 32; far *= 2) {
    const std::int32_t other = __shfl_up_sync(~0u, sum, far);
    if (lane >= far) sum += other;
  }
  return sum - v;
}

__global__ void __launch_bounds__(threads) order_kernel(const order_args a) {
  extern __shared__ std::int32_t room[];  // [warps, experts] counts; [experts] slots, then where they begin
  let_next_start();
  wait_for_previous();
  std::int32_t* totals = room + warps * a.experts;
  std::int32_t* mine = room + threadIdx.x / 32 * a.experts;
  const std::uint32_t lane = threadIdx.x % 32;
  for (std::uint32_t i = threadIdx.x; i < warps * a.experts; i += threads) room[i] = 0;
  __syncthreads();
  const auto leads = [lane](unsigned peers) { return static_cast<std::uint32_t>(__ffs(peers)) == lane + 1; };
  each_slot(a, [&](std::int32_t expert, unsigned peers, std::uint32_t) {
    if (expert >= 0 && leads(peers)) mine[expert] += __popc(peers);
  });
  __syncthreads();
  // Each warp's count becomes that of the warps in front of it.
  for (std::uint32_t e = threadIdx.x; e < a.experts; e += threads) {
    std::int32_t sum = 0;
    for (std::uint32_t w = 0; w < warps; ++w) {
      const std::int32_t here = room[w * a.experts + e];
      room[w * a.experts + e] = sum;
      sum += here;
    }
    totals[e] = sum;
  }
  __syncthreads();
  // Beginnings of experts and of their tiles, by one warp.
  const auto tiles_of = [&](std::int32_t slots) {
    return (slots + static_cast<std::int32_t>(a.tile_slots) - 1) / static_cast<std::int32_t>(a.tile_slots);
  };
  if (threadIdx.x < 32) {
    std::int32_t slots = 0, tiles = 0;
    for (std::uint32_t at = 0; at < a.experts; at += 32) {
      const std::uint32_t e = at + lane;
      const std::int32_t here = e < a.experts ? totals[e] : 0, few = tiles_of(here);
      const std::int32_t slots_before = slots + sum_before(here, lane),
                         tiles_before = tiles + sum_before(few, lane);
      for (std::int32_t t = 0; t < few; ++t) {
        const std::int32_t done = t * static_cast<std::int32_t>(a.tile_slots);
        a.tiles[tiles_before + t] = {static_cast<std::int32_t>(e), slots_before + done,
                                     min(static_cast<std::int32_t>(a.tile_slots), here - done)};
      }
      if (e < a.experts) totals[e] = slots_before;
      slots = __shfl_sync(~0u, slots_before + here, 31);
      tiles = __shfl_sync(~0u, tiles_before + few, 31);
    }
    if (lane == 0) *a.count = tiles;
    for (std::uint32_t i = static_cast<std::uint32_t>(slots) + lane; i < a.slots; i += 32) a.order[i] = -1;
  }
  __syncthreads();
  each_slot(a, [&](std::int32_t expert, unsigned peers, std::uint32_t i) {
    if (expert >= 0) {
      const std::int32_t before = __popc(peers & ((1u << lane) - 1));
      a.order[totals[expert] + mine[expert] + before] = static_cast<std::int32_t>(i);
    }
    __syncwarp();
    if (expert >= 0 && leads(peers)) mine[expert] += __popc(peers);
  });
}

}  // namespace

void order_slots(device& d, const expert_lists& lists, std::uint32_t slots, std::uint32_t experts,
                 const expert_division& by) {
  static_assert((warps + 1) * most_experts * sizeof(std::int32_t) <= general_shared);
  const std::size_t shared = (warps + 1) * std::size_t{experts} * sizeof(std::int32_t);
  if (shared > 48u << 10) allow_shared(d, order_kernel, (warps + 1) * most_experts * sizeof(std::int32_t));
  launch(d, order_kernel, dim3(1), threads, shared,
         order_args{lists.ids, lists.order, lists.tiles, lists.count, slots, experts, by.tile_slots});
}

}  // namespace weir::kernels::cuda
