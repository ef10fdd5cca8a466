// Products of many slots with plain weights on the Hopper path, by warpgroups.
//
// A block computes a tile of up to 64 or 128 slots, which have one expert, by 256 rows of the expert's
// matrix, as products/product_wgmma.cu does for rows of x: the same ring, and one or two warpgroups of 64
// slots each. Slots lie in the order of their experts (gather_slots()), so that a tensor copy takes those of
// a tile at once. The copy of the last tile of an expert brings slots of the next one, too: what is computed
// for them is not written.
//
// Blocks stay, and take one tile after the other. How many tiles there are is known on the device alone.
#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/tensor_map.h"
#include "kernels/cuda/device/wgmma.h"
#include "kernels/cuda/experts/put_expert.h"
#include "kernels/cuda/products/wgmma_tile.h"

namespace weir::kernels::cuda {
namespace {

constexpr int w_rows = 256;

struct group_args {
  expert_args a;
  std::uint32_t w_tiles, chunks;  // tiles of an expert's matrix; stages of all of K
  bool by_slot;                   // outputs are written by the numbers of slots, and not in their order
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ expert_tile tile_at(const expert_args& a, std::uint32_t index) {
  const expert_tile* t = a.tiles + index;
  return {__ldcg(&t->expert), __ldcg(&t->first), __ldcg(&t->count)};
}

// Loads all stages of the block, by one thread.
template <class plan>
__device__ void load(const group_args& g, const CUtensorMap& w, const CUtensorMap& x,
                     const wgmma_ring<plan>& r) {
  wait_for_previous();
  const std::uint32_t shares = static_cast<std::uint32_t>(__ldcg(g.a.count)) * g.w_tiles;
  turn_of_ring<plan::stages> at;
  for (std::uint32_t index = blockIdx.x; index < shares; index += gridDim.x) {
    const expert_tile t = tile_at(g.a, index / g.w_tiles);
    const auto slab = static_cast<int>(index % g.w_tiles) * plan::slabs;
    for (std::uint32_t chunk = 0; chunk < g.chunks; ++chunk, at.next()) {
      const auto column = static_cast<int>(chunk * panel_columns);
      barrier_wait(r.empty(at.stage), at.phase ^ 1);
      barrier_expect(r.full(at.stage), plan::stage);
      copy_slabs(r.w(at.stage), w, column, t.expert * plan::planes, slab, r.full(at.stage));
      copy_box(r.x(at.stage), x, column, t.first, r.full(at.stage));
    }
  }
}

// Outputs `i` and `i` + 1 of a slot in every other case than put_row()'s quick ones. Not a part of the
// unrolled loop there: it would not fit into the cache of instructions.
template <class plan>
__device__ __noinline__ void put_slowly(const expert_args& a, std::int32_t expert, std::int32_t slot,
                                        std::uint32_t i, float2 v, float2 up) {
  put_two<plan::type>(a, expert, slot, i, v, up);
}

// Writes a thread's outputs of slot `row` of a tile; those of slab j come from sums + 4 * planes * j.
template <class plan>
__device__ __forceinline__ void put_row(const group_args& g, const expert_tile& t, std::int32_t row,
                                        std::uint32_t slab, const float* sums) {
  if (row >= t.count) return;
  const expert_args& a = g.a;
  const std::int32_t place = t.first + row, to = g.by_slot ? __ldcg(a.order + place) : place;
  const auto each_pair = [&](const auto& put) {
#pragma unroll
    for (int j = 0; j < plan::slabs; ++j) {
      const float* s = sums + 4 * plan::planes * j;
      const std::uint32_t i = (slab + static_cast<std::uint32_t>(j)) * 8 + threadIdx.x % 4 * 2;
      if (i < a.width())
        put(i, make_float2(s[0], s[1]), make_float2(s[4 * plan::planes - 4], s[4 * plan::planes - 3]));
    }
  };
  const std::size_t at = static_cast<std::size_t>(to) * a.width();
  if (plan::planes == 2 && !a.bias && can_gate(a.f)) {
    auto* const out = static_cast<element*>(a.out) + at;
    each_pair([&](std::uint32_t i, float2 gate, float2 up) {
      *reinterpret_cast<std::uint32_t*>(out + i) =
          pair_of<plan::type>(gated_quickly(a.f, gate.x, up.x), gated_quickly(a.f, gate.y, up.y));
    });
  } else if (plan::planes == 1 && !a.bias && a.kind == expert_out::made) {
    auto* const out = static_cast<float*>(a.out) + at;
    each_pair([&](std::uint32_t i, float2 v, float2) { *reinterpret_cast<float2*>(out + i) = v; });
  } else {
    each_pair([&](std::uint32_t i, float2 v, float2 up) { put_slowly<plan>(a, t.expert, to, i, v, up); });
  }
}

// Multiplies all shares of the block, by one warpgroup.
template <class plan>
__device__ void compute(const group_args& g, const wgmma_ring<plan>& r) {
  const std::uint32_t group = threadIdx.x / 128, thread = threadIdx.x % 128;
  const auto leave_stage = [&](int stage) {
    if (thread == 0) barrier_arrive(r.empty(stage));
  };
  const std::uint32_t shares = static_cast<std::uint32_t>(__ldcg(g.a.count)) * g.w_tiles;
  turn_of_ring<plan::stages> at;
  for (std::uint32_t index = blockIdx.x; index < shares; index += gridDim.x) {
    const expert_tile t = tile_at(g.a, index / g.w_tiles);
    if (static_cast<std::int32_t>(group * 64) >= t.count) {  // this warpgroup has no slots of the tile
      for (std::uint32_t chunk = 0; chunk < g.chunks; ++chunk, at.next()) {
        if (thread == 0) barrier_wait(r.full(at.stage), at.phase);
        leave_stage(at.stage);
      }
      named_barrier(1 + group, 128);  // no thread is at the next tile before all stages of this one came
      continue;
    }
    float sums[plan::w_rows / 2];
    for (std::uint32_t chunk = 0; chunk < g.chunks; ++chunk, at.next()) {
      barrier_wait(r.full(at.stage), at.phase);
      const std::uint64_t x = panels_at(r.x(at.stage) + group * (plan::x_bytes / plan::groups), 16),
                          w = panels_at(r.w(at.stage), 16);
      products_begin();
#pragma unroll
      for (int i = 0; i < panel_columns / 16; ++i)
        multiply_ss<plan::type>(sums, x + i * 2, w + i * 2, i > 0 || chunk > 0);
      products_end_group();
      wait_products<1>();
      if (chunk > 0) leave_stage(at.before());
    }
    wait_products<0>(sums);
    leave_stage(at.before());
    const auto row = static_cast<std::int32_t>(group * 64 + thread / 32 * 16 + thread % 32 / 4);
    const std::uint32_t slab = index % g.w_tiles * plan::slabs;
    put_row<plan>(g, t, row, slab, sums);
    put_row<plan>(g, t, row + 8, slab, sums + 2);
    __syncwarp();  // all lanes are at the next product together
  }
}
#endif

template <class plan>
__global__ void __launch_bounds__(plan::threads, 1)
    group_kernel(const __grid_constant__ CUtensorMap w, const __grid_constant__ CUtensorMap x,
                 const __grid_constant__ group_args g) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared[];
  const wgmma_ring<plan> r{shared_address(shared)};
  if (threadIdx.x == 0) {
    for (int i = 0; i < plan::stages; ++i) {
      barrier_init(r.full(i), 1);
      barrier_init(r.empty(i), plan::groups);
    }
    barrier_inits_end();
  }
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= plan::groups * 128) {
    if constexpr (plan::groups == 2) keep_registers<40>();
    if (threadIdx.x == plan::groups * 128) load<plan>(g, w, x, r);
  } else {
    if constexpr (plan::groups == 2) take_registers<232>();
    wait_for_previous();
    compute<plan>(g, r);
  }
#endif
}

template <dtype type, product_out kind, int groups>
void start(device& d, const expert_product& p, const group_args& g, const expert_division& by) {
  using plan = wgmma_plan<type, kind, groups, 1, w_rows>;
  const auto kernel = group_kernel<plan>;
  allow_shared(d, kernel, plan::bytes);
  // The map of w has the dimensions [slab, plane, 8 rows, k]; an expert has one plane, or gate and up.
  const std::uint32_t width = g.a.width();
  const std::uint64_t row = std::uint64_t{g.a.k} * 2;  // bytes
  const CUtensorMap w = tensor_map<4>(
      d, elements_as, swizzled, g.a.w, {g.a.k, 8, std::uint64_t{plan::planes} * p.w.count, width / 8},
      {row, width * row, 8 * row}, {panel_columns, 8, plan::planes, plan::slabs});
  const CUtensorMap x = tensor_map<2>(d, elements_as, swizzled, g.a.x, {g.a.k, g.a.slots}, {row},
                                      {panel_columns, plan::x_rows});
  const auto most = std::min(by.tiles * g.w_tiles, static_cast<std::uint32_t>(d.multiprocessors));
  launch(d, kernel, dim3(most), plan::threads, plan::bytes, w, x, g);
}

// A block has a row of x, which it copies for each of its slots.
__global__ void gather_kernel(const element* x, const std::int32_t* order, std::uint32_t share,
                              std::uint32_t width, element* out) {
  let_next_start();
  wait_for_previous();
  const std::int32_t slot = __ldcg(order + blockIdx.x);
  if (slot < 0) return;
  const auto* from =
      reinterpret_cast<const uint4*>(x + std::size_t{static_cast<std::uint32_t>(slot) / share} * width);
  auto* to = reinterpret_cast<uint4*>(out + std::size_t{blockIdx.x} * width);
  for (std::uint32_t i = threadIdx.x; i < width / 8; i += blockDim.x) to[i] = __ldcg(from + i);
}

}  // namespace

bool can_group_slots(const device& d, const expert_matrices& w, const expert_division& by) {
  const matrix& m = w.first;
  return d.path == code_path::hopper && !d.deterministic && d.encode_map && by.tile_slots >= tile_slots &&
         is_plain(m.type) && m.type != dtype::f32 &&
         w.stride == std::uint64_t{m.rows} * m.cols * sizeof(element);
}

void gather_slots(device& d, const expert_lists& lists, const element* x, std::uint32_t slots,
                  std::uint32_t share, std::uint32_t width, element* out) {
  launch(d, gather_kernel, dim3(slots), 256, 0, x, lists.order, share, width, out);
}

void expert_groups(device& d, dtype type, const expert_product& p, const expert_args& a,
                   const expert_division& by) {
  const group_args g{a, (a.n + w_rows - 1) / w_rows, (a.k + panel_columns - 1) / panel_columns,
                     p.places == slot_places::to_slots};
  const auto run = [&](auto of, auto kind) {
    if (by.tile_slots == tile_slots) return start<of, kind, 1>(d, p, g, by);
    start<of, kind, 2>(d, p, g, by);
  };
  const auto with_kind = [&](auto of) {
    if (a.kind == expert_out::gated)
      return run(of, std::integral_constant<product_out, product_out::gated>{});
    run(of, std::integral_constant<product_out, product_out::element>{});
  };
  if (type == dtype::f16) return with_kind(std::integral_constant<dtype, dtype::f16>{});
  with_kind(std::integral_constant<dtype, dtype::bf16>{});
}

}  // namespace weir::kernels::cuda
