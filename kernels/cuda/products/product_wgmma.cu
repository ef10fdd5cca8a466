// Products of more than 8 (gated) or 32 rows on the Hopper path, by warpgroups.
//
// A block computes 64 or 128 rows of x by `w_rows` rows of the weights. A stage of the ring holds 64 columns
// of both. One warp loads, and one or two warpgroups multiply 64 rows of x each. The weights are the operand
// of wgmma that may have many rows, so that a wide tile reads x seldom. For gated, rows of gate and up
// alternate in groups of eight, so that one thread has both numbers that it multiplies.
//
// For more than 128 rows of x the two blocks of a cluster have the same weights and different rows of x, and
// each loads one half of the weights for both at once (multicast).
//
// Blocks stay, and take one tile after the other: while a tile is written, the next one is loaded. Every tile
// takes the same time, so `w_rows` is chosen such that no block waits long for the others at the end
// (wgmma_division.h). For add_f32, several blocks may compute one tile: each sums a part of K and adds it to
// the output by atomics, so that the last bits may differ between runs.
//
// The loads of the first weights begin before the kernel in front has ended. They are few: x, which the block
// needs as well, would have to wait behind more of them.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/tensor_map.h"
#include "kernels/cuda/device/wgmma.h"
#include "kernels/cuda/products/wgmma_division.h"
#include "kernels/cuda/products/wgmma_tile.h"

namespace weir::kernels::cuda {
namespace {

// The stages whose weights are asked for before the kernel in front has ended.
[[maybe_unused]] constexpr std::uint32_t early_stages = 4;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Loads all stages of the block, by one thread.
template <class plan>
__device__ void load(const wgmma_args& a, const CUtensorMap& w, const CUtensorMap& x,
                     const wgmma_ring<plan>& r, const block_place& here) {
  const auto ask_weights = [&](const wgmma_share<plan>& s, std::uint32_t chunk, int stage) {
    constexpr std::uint16_t both = 3;  // blocks of the cluster
    barrier_expect(r.full(stage), plan::stage);
    const auto column = static_cast<int>(chunk * panel_columns);
    if constexpr (plan::blocks == 1)
      copy_slabs_once(r.w(stage), w, column, static_cast<int>(s.slab), r.full(stage));
    else
      copy_slabs_to(both, r.w(stage) + here.rank * (plan::w_bytes / 2), w, column,
                    static_cast<int>(s.slab + here.rank * (plan::slabs / 2)), r.full(stage), a.weights_hint);
  };
  const wgmma_share<plan> first(a, here.cluster, here.rank);
  const auto early = std::min({early_stages, std::uint32_t{plan::stages}, first.end - first.begin});
  for (std::uint32_t i = 0; i < early; ++i) ask_weights(first, first.begin + i, static_cast<int>(i));
  wait_for_previous();
  turn_of_ring<plan::stages> at;
  for (std::uint32_t index = here.cluster; index < a.shares; index += here.clusters) {
    const wgmma_share<plan> s(a, index, here.rank);
    for (std::uint32_t chunk = s.begin; chunk < s.end; ++chunk, at.next()) {
      if (index != here.cluster || chunk - s.begin >= early) {
        barrier_wait(r.empty(at.stage), at.phase ^ 1);
        ask_weights(s, chunk, at.stage);
      }
      copy_box(r.x(at.stage), x, static_cast<int>(chunk * panel_columns), static_cast<int>(s.row),
               r.full(at.stage));
    }
  }
}

// Multiplies all shares of the block, by one warpgroup.
template <class plan>
__device__ void compute(const wgmma_args& a, const wgmma_ring<plan>& r, const block_place& here) {
  const std::uint32_t group = threadIdx.x / 128, thread = threadIdx.x % 128;
  // A stage is free when the warpgroups of all blocks of the cluster are done with it.
  const auto leave_stage = [&](int stage) {
    if (thread >= plan::blocks) return;
    if constexpr (plan::blocks == 1)
      barrier_arrive(r.empty(stage));
    else
      barrier_arrive_at(r.empty(stage), thread);
  };
  const auto put = [&](std::uint32_t row, std::uint32_t slab, const float* sums) {
    if constexpr (plan::kind == product_out::add_f32)
      add_sums<plan>(a, row, slab, sums);
    else
      put_elements<plan>(a, row, slab, sums);
  };
  turn_of_ring<plan::stages> at;
  for (std::uint32_t index = here.cluster; index < a.shares; index += here.clusters) {
    const wgmma_share<plan> s(a, index, here.rank);
    float sums[plan::w_rows / 2];
    for (std::uint32_t chunk = s.begin; chunk < s.end; ++chunk, at.next()) {
      barrier_wait(r.full(at.stage), at.phase);
      const std::uint64_t x = panels_at(r.x(at.stage) + group * (plan::x_bytes / plan::groups), 16),
                          w = panels_at(r.w(at.stage), 16);
      products_begin();
#pragma unroll
      for (int i = 0; i < panel_columns / 16; ++i)
        multiply_ss<plan::type>(sums, x + i * 2, w + i * 2, i > 0 || chunk > s.begin);
      products_end_group();
      wait_products<1>();
      if (chunk > s.begin) leave_stage(at.before());
    }
    wait_products<0>(sums);
    leave_stage(at.before());
    const std::uint32_t row = s.row + group * 64 + thread / 32 * 16 + thread % 32 / 4;
    put(row, s.slab, sums);
    put(row + 8, s.slab, sums + 2);
  }
}
#endif

template <class plan>
__global__ void __launch_bounds__(plan::threads, 1)
    wgmma_kernel(const __grid_constant__ CUtensorMap w, const __grid_constant__ CUtensorMap x,
                 const __grid_constant__ wgmma_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared[];
  const wgmma_ring<plan> r{shared_address(shared)};
  const block_place here{plan::blocks == 1 ? 0 : rank_in_cluster(), blockIdx.x / plan::blocks,
                         gridDim.x / plan::blocks};
  const auto synchronise = [] {
    if constexpr (plan::blocks == 1)
      __syncthreads();
    else
      cluster_barrier();
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < plan::stages; ++i) {
      barrier_init(r.full(i), 1);
      barrier_init(r.empty(i), plan::blocks * plan::groups);
    }
    barrier_inits_end();
  }
  synchronise();
  let_next_start();
  if (threadIdx.x >= plan::groups * 128) {
    if constexpr (plan::groups == 2) keep_registers<40>();
    if (threadIdx.x == plan::groups * 128) load<plan>(a, w, x, r, here);
  } else {
    if constexpr (plan::groups == 2) take_registers<232>();
    wait_for_previous();
    compute<plan>(a, r, here);
  }
  if constexpr (plan::blocks > 1) cluster_barrier();  // the other block writes no more to this block's memory
#endif
}

static_assert(wgmma_chunk == panel_columns);

std::uint32_t parts(std::uint32_t all, std::uint32_t each) { return (all + each - 1) / each; }

template <class plan>
void start_plan(device& d, const product& p, const wgmma_division& how) {
  const auto kernel = wgmma_kernel<plan>;
  allow_shared(d, kernel, plan::bytes);
  // The map of w has the dimensions [slab, plane, 8 rows, k]; for gated, gate and up are one plane each.
  const std::uint32_t width = p.n / plan::planes;
  const std::uint64_t row = std::uint64_t{p.k} * 2;  // bytes
  const CUtensorMap w = tensor_map<4>(d, elements_as, swizzled, p.w, {p.k, 8, plan::planes, width / 8},
                                      {row, width * row, 8 * row},
                                      {panel_columns, 8, plan::planes, plan::slabs / plan::blocks});
  const CUtensorMap x =
      tensor_map<2>(d, elements_as, swizzled, p.x, {p.k, p.m}, {row}, {panel_columns, plan::x_rows});
  const std::uint32_t shares = parts(p.n, plan::w_rows) * how.x_tiles * how.adders;
  const wgmma_args a{p.out,
                     width,
                     p.m,
                     how.x_tiles,
                     how.adders,
                     shares,
                     parts(p.k, panel_columns),
                     how.x_tiles == 1 ? evict_first : evict_normal,
                     p.gate};
  const std::uint32_t clusters = static_cast<std::uint32_t>(d.multiprocessors) / plan::blocks;
  launch_clusters(d, kernel, dim3(plan::blocks * std::min(shares, clusters)), dim3(plan::blocks),
                  plan::threads, plan::bytes, w, x, a);
}

template <dtype type, product_out kind, int x_groups, int blocks>
void start(device& d, const product& p, const wgmma_division& how) {
  const auto start_one = [&]<std::size_t i>() {
    constexpr auto w_rows = static_cast<int>(wgmma_widths(kind)[i]);
    if constexpr (w_rows > 0)
      if (how.w_rows == w_rows) start_plan<wgmma_plan<type, kind, x_groups, blocks, w_rows>>(d, p, how);
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) { (start_one.template operator()<i>(), ...); }
  (std::make_index_sequence<wgmma_widths(kind).size()>());
}

}  // namespace

void wgmma_product(device& d, const product& p) {
  const wgmma_division how =
      divide_wgmma(static_cast<std::uint32_t>(d.multiprocessors), p.kind, p.n, p.k, p.m);
  with_constants(p, [&](auto type, auto kind) {
    if constexpr (kind != product_out::f32) {  // choose_product() excludes it
      if (how.x_groups == 1) return start<type, kind, 1, 1>(d, p, how);
      if (how.blocks == 1) return start<type, kind, 2, 1>(d, p, how);
      start<type, kind, 2, 2>(d, p, how);
    }
  });
}

}  // namespace weir::kernels::cuda
