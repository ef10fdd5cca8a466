// Products of up to 128 rows on the Hopper path. The weights are read once, at the speed of the memory, as in
// stream.cu. Here warpgroups multiply them from shared memory, as the operand of wgmma that has 64 rows.
//
// A block has one warp that loads, and one warpgroup that multiplies, or two where x has more than 64 rows.
// The stages of the ring hold some columns of a tile's weights and of x. A unit of work is one stage of a
// tile, and every block gets the same number of units, so that all blocks read until the end (unit_shares.h).
// The loads of the first weights begin before the kernel waits for the kernel that computes x.
//
// A tile that blocks share: for add_f32 every block adds its sums to the output by atomics; for the other
// kinds the block that has the first part of K writes the tile.
#include <cuda.h>

#include <algorithm>

#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/device/tensor_map.h"
#include "kernels/cuda/device/wgmma.h"
#include "kernels/cuda/products/put_sums.h"
#include "kernels/cuda/products/stream_tile.h"
#include "kernels/cuda/products/unit_shares.h"

namespace weir::kernels::cuda {
namespace {

template <dtype type, product_out kind, int wide>
__global__ void __launch_bounds__(wide_ring<wide>::threads, 1)
    wide_kernel(const __grid_constant__ CUtensorMap w, const __grid_constant__ CUtensorMap x,
                const wide_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using r = wide_ring<wide>;
  constexpr int stages = r::stages, groups = r::groups, panels = r::panels;
  extern __shared__ __align__(1024) unsigned char shared[];
  const std::uint32_t base = shared_address(shared), full = base + stages * r::stage,
                      empty = full + stages * 8;
  // Blocks are numbered from the last one, so that the blocks that share the tile of this one have started
  // already.
  const std::uint32_t block = gridDim.x - 1 - blockIdx.x;
  const unit_shares shares{a.tiles * a.chunks, a.chunks, gridDim.x};
  const std::uint32_t begin = shares.begin_of(block), end = shares.begin_of(block + 1);
  // The shared-memory addresses of a panel of weights, and of a panel of x.
  const auto weights_at = [&](int stage, int panel) { return base + stage * r::stage + panel * r::weights; };
  const auto x_at = [&](int stage, int panel) {
    return base + stage * r::stage + panels * r::weights + panel * r::x;
  };

  const auto ask_weights = [&](std::uint32_t unit, int stage) {
    const std::uint32_t tile = unit / a.chunks, chunk = unit % a.chunks;
    barrier_expect(full + 8 * stage, r::stage);
#pragma unroll
    for (int i = 0; i < panels; ++i)
      copy_slabs_once(weights_at(stage, i), w, (chunk * panels + i) * panel_columns, tile * a.slabs,
                      full + 8 * stage);
  };
  const auto ask_x = [&](std::uint32_t unit, int stage) {
#pragma unroll
    for (int i = 0; i < panels; ++i)
      copy_box(x_at(stage, i), x, (unit % a.chunks * panels + i) * panel_columns, 0, full + 8 * stage);
  };
  const bool asks = threadIdx.x == groups * 128;
  if (asks) {
    for (int i = 0; i < stages; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, groups);
    }
    barrier_inits_end();
    for (std::uint32_t i = 0; i < stages && begin + i < end; ++i) ask_weights(begin + i, i);
  }
  let_next_start();
  __syncthreads();
  wait_for_previous();

  turn_of_ring<stages> at;
  if (threadIdx.x >= groups * 128) {
    if (!asks) return;
    for (std::uint32_t i = 0; i < stages && begin + i < end; ++i) ask_x(begin + i, i);
    for (std::uint32_t unit = begin + stages; unit < end; ++unit, at.next()) {
      barrier_wait(empty + 8 * at.stage, at.phase);
      ask_weights(unit, at.stage);
      ask_x(unit, at.stage);
    }
    return;
  }

  const std::uint32_t group = threadIdx.x / 128;
  const auto place_of = [&](std::uint32_t b) { return b * groups + group; };
  const std::uint32_t outputs = kind == product_out::gated ? a.n / 2 : a.n;
  const put_args to{a.out, outputs, a.m, outputs, kind, a.gate};
  const auto leave_stage = [&](int stage) {
    if (threadIdx.x % 128 == 0) barrier_arrive(empty + 8 * stage);
  };
  for (std::uint32_t unit = begin; unit < end;) {
    const std::uint32_t tile = unit / a.chunks, first = unit % a.chunks,
                        stop = std::min(a.chunks, first + end - unit);
    float sums[wide / 2] = {};
    for (std::uint32_t chunk = first; chunk < stop; ++chunk, at.next()) {
      barrier_wait(full + 8 * at.stage, at.phase);
      products_begin();
#pragma unroll
      for (int i = 0; i < panels * panel_columns / 16; ++i)
        multiply_ss<type>(
            sums, panels_at(weights_at(at.stage, i / 4) + group * 64 * panel_columns * 2, 16) + i % 4 * 2,
            panels_at(x_at(at.stage, i / 4), 16) + i % 4 * 2, 1);
      products_end_group();
      wait_products<1>();
      if (chunk > first) leave_stage(at.before());
    }
    wait_products<0>(sums);
    leave_stage(at.before());
    unit += stop - first;

    if constexpr (kind != product_out::add_f32)
      if (!gather_sums<wide, groups>(shares, block, tile, first, a.parts, a.arrived, place_of, sums))
        continue;
    put_sums<type, wide>(to, (tile * groups + group) * 4 + threadIdx.x / 32 % 4, 0, sums);
  }
#endif
}

template <dtype type, product_out kind, int wide>
void start(device& d, const product& p) {
  using r = wide_ring<wide>;
  const auto kernel = wide_kernel<type, kind, wide>;
  allow_shared(d, kernel, r::bytes);
  // The map of w has the dimensions [slab, plane, 8 rows, k]; for gated, gate and up are one plane each.
  constexpr std::uint32_t planes = kind == product_out::gated ? 2 : 1, tile_rows = r::rows / planes;
  const std::uint32_t rows = p.n / planes;
  const std::uint64_t row = std::uint64_t{p.k} * 2;  // bytes
  const CUtensorMap w = tensor_map<4>(d, elements_as, swizzled, p.w, {p.k, 8, planes, rows / 8},
                                      {row, rows * row, 8 * row}, {panel_columns, 8, planes, tile_rows / 8});
  const CUtensorMap x =
      tensor_map<2>(d, elements_as, swizzled, p.x, {p.k, p.m}, {row}, {panel_columns, wide});
  const wide_args a{p.out,
                    static_cast<float4*>(d.workspace),
                    d.arrived,
                    p.n,
                    p.m,
                    (rows + tile_rows - 1) / tile_rows,
                    (p.k + r::panels * panel_columns - 1) / (r::panels * panel_columns),
                    tile_rows / 8,
                    p.gate};
  const unsigned grid = std::min(static_cast<unsigned>(d.multiprocessors), a.tiles * a.chunks);
  launch(d, kernel, dim3(grid), r::threads, r::bytes, w, x, a);
}

template <dtype type, product_out kind>
void start(device& d, const product& p) {
  if (p.m <= 8) return start<type, kind, 8>(d, p);
  if (p.m <= 16) return start<type, kind, 16>(d, p);
  if (p.m <= 32) return start<type, kind, 32>(d, p);
  if (p.m <= 48) return start<type, kind, 48>(d, p);
  if (p.m <= 64) return start<type, kind, 64>(d, p);
  if constexpr (kind != product_out::f32) {
    if (p.m <= 96) return start<type, kind, 96>(d, p);
    start<type, kind, 128>(d, p);
  }
}

}  // namespace

bool open_wide(device& d) {
  if (d.path != code_path::hopper) return true;
  cudaDriverEntryPointQueryResult found;
  WEIR_CUDA(d, cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &d.encode_map, 12000,
                                                cudaEnableDefault, &found));
  static_assert(wide_ring<128>::groups <= device::arrived_each);
  return !d.failed();
}

void stream_wide_product(device& d, const product& p) {
  with_constants(p, [&](auto type, auto kind) { start<type, kind>(d, p); });
}

}  // namespace weir::kernels::cuda
