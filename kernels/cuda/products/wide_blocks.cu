// Products of 9 rows and more with quantised weights on the Hopper path. The weights are read as they are
// stored, and each is rounded to bf16 on its way to wgmma.
//
// Blocks share tiles by units (unit_shares.h), and are as in stream_wide.cu, with these differences:
//
// - A unit is one cell's columns of a tile. The cells of a unit are one stage of a ring. The unit's columns
//   of x are one stage of another ring, or two.
// - Two blocks are a cluster. They have tiles side by side and the same units, and each copies one half of
//   the rows of x into the shared memory of both.
// - Warpgroups round the weights of their 64 rows in registers, where wgmma takes its first operand from,
//   while earlier products are computed.
//
// Of each 16 columns a lane of a cell has four neighbours (block_layout.h), where wgmma takes a pair from
// each half. So x is in paired order (element.h): its kernel has written it so, or another kernel changes it
// first.
//
// More than `wide` rows of x are divided among clusters: those that multiply the same weights are neighbours,
// so that only the first of them reads the weights from memory.
#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/tensor_map.h"
#include "kernels/cuda/products/unit_shares.h"
#include "kernels/cuda/products/wide_blocks.h"

namespace weir::kernels::cuda {
namespace {

// The workspace of the device: first sums of shared tiles, then x in order.
constexpr std::size_t parts_bytes = device::workspace_bytes - paired_bytes;
static_assert(block_rings<dtype::q8_0, 256>::parts * 256 <= parts_bytes);  // for up to 256 multiprocessors

// Puts 16 columns of a row in order.
__global__ void order_kernel(const uint4* x, std::uint32_t count, uint4* out) {
  let_next_start();
  wait_for_previous();
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint4 a = __ldcg(x + 2 * i), b = __ldcg(x + 2 * i + 1);
  out[2 * i] = make_uint4(a.x, a.z, b.x, b.z);
  out[2 * i + 1] = make_uint4(a.y, a.w, b.y, b.w);
}

template <dtype type, int wide>
__global__ void __launch_bounds__(block_rings<type, wide>::threads, 1)
    wide_blocks_kernel(const __grid_constant__ CUtensorMap w, const __grid_constant__ CUtensorMap x,
                       const wide_block_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using r = block_rings<type, wide>;
  constexpr int groups = r::groups;
  extern __shared__ __align__(1024) unsigned char shared[];
  const std::uint32_t base = shared_address(shared), cells_full = base + r::barriers_at,
                      cells_empty = cells_full + r::weights * 8, x_full = cells_empty + r::weights * 8,
                      x_empty = x_full + r::xs * 8;  // of x_empty there is one more
  // Blocks are numbered from the last one, so that the blocks that share the tile of this one have started
  // already.
  const std::uint32_t index = gridDim.x - 1 - blockIdx.x, side = index % 2, lanes = gridDim.x / 2 / a.across,
                      block = index / 2 / a.across, across = index / 2 % a.across;
  const unit_shares shares{a.tiles * a.chunks, a.chunks, lanes};
  const std::uint32_t begin = shares.begin_of(block), end = shares.begin_of(block + 1);

  const auto ask_cells = [&](std::uint32_t unit, int stage) {
    barrier_expect(cells_full + 8 * stage, r::cells);
    copy_slabs_once(base + r::cells_at + stage * r::cells, w, unit % a.chunks * (r::cell / 8),
                    (unit / a.chunks * 2 + side) * a.slabs, cells_full + 8 * stage);
  };
  const std::uint32_t rank = blockIdx.x % 2, loader = threadIdx.x - groups * 128;
  if (loader == 0) {
    for (int i = 0; i < r::weights; ++i) {
      barrier_init(cells_full + 8 * i, 1);
      barrier_init(cells_empty + 8 * i, groups * 4 * warp_arrivals);
    }
    for (int i = 0; i < r::xs; ++i) barrier_init(x_full + 8 * i, 1);
    for (int i = 0; i <= r::xs; ++i) barrier_init(x_empty + 8 * i, 2 * groups * 4);
    barrier_inits_end();
    for (std::uint32_t i = 0; i < r::weights && begin + i < end; ++i) ask_cells(begin + i, i);
  }
  let_next_start();
  cluster_barrier();
  wait_for_previous();

  turn_of_ring<r::weights> at;
  turn_of_ring<r::xs> at_x;
  if (threadIdx.x >= groups * 128) {
    keep_registers<r::few>();
    if (loader == 0)
      for (std::uint32_t unit = begin + r::weights; unit < end; ++unit, at.next()) {
        barrier_wait(cells_empty + 8 * at.stage, at.phase);
        ask_cells(unit, at.stage);
      }
    if (loader == 32)
      for (std::uint32_t i = 2 * begin; i < 2 * end; i += r::panels, at_x.next()) {
        if (i >= 2 * begin + r::xs * r::panels) barrier_wait(x_empty + 8 * at_x.stage, at_x.phase ^ 1);
        barrier_expect(x_full + 8 * at_x.stage, r::panels * r::panel);
#pragma unroll
        for (int p = 0; p < r::panels; ++p)
          copy_box_to(3, base + (at_x.stage * r::panels + p) * r::panel + rank * r::half, x,
                      (i + p) % (2 * a.chunks) * panel_columns, across * wide + rank * (wide / 2),
                      x_full + 8 * at_x.stage);
      }
    return;
  }

  take_registers<r::many>();
  const std::uint32_t group = threadIdx.x / 128, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // The barrier of the panel before this one; at first one that nobody waits for, so that wgmma is not held
  // up by a branch.
  std::uint32_t before = x_empty + 8 * r::xs;
  if (r::turns && group == 1) named_barrier_arrive(4, 256);  // the first turn is warpgroup 0's
  // The place of the warpgroup in the block that has part `b` of the units of the same rows of x and weights.
  const auto place_of = [&](std::uint32_t b) {
    return ((b * a.across + across) * 2 + side) * groups + group;
  };
  for (std::uint32_t unit = begin; unit < end;) {
    const std::uint32_t tile = unit / a.chunks, first = unit % a.chunks,
                        stop = std::min(a.chunks, first + end - unit);
    float sums[wide / 2] = {};
    for (std::uint32_t chunk = first; chunk < stop; ++chunk, at.next()) {
      barrier_wait(cells_full + 8 * at.stage, at.phase);
      const unsigned char* cells = shared + r::cells_at + at.stage * r::cells + warp * 2 * r::cell;
      cell_row<type> rows[2];
#pragma unroll
      for (int s = 0; s < 2; ++s) rows[s].load_shared_record(cells + s * r::cell, lane);
#pragma unroll
      for (int j = 0; j < 4; j += r::batch) {
        if (j * rows[0].units % 4 == 0)
#pragma unroll
          for (int s = 0; s < 2; ++s)
            rows[s].load_shared_codes(cells + s * r::cell, lane, j * rows[0].units / 4);
        std::uint32_t operands[r::batch][2][4];
#pragma unroll
        for (int i = 0; i < r::batch; ++i) round_columns(rows, j + i, operands[i]);
        const bool begins = j % (2 * r::panels) == 0,
                   ends = (j + r::batch) % (2 * r::panels) == 0;  // a stage of x
        if (begins) barrier_wait(x_full + 8 * at_x.stage, at_x.phase);
        if constexpr (r::turns) named_barrier(4 + group, 256);
        products_begin();
#pragma unroll
        for (int i = 0; i < r::batch; ++i)
#pragma unroll
          for (int h = 0; h < 2; ++h)
            multiply_rows<dtype::bf16>(
                sums, operands[i][h],
                panels_at(base + (at_x.stage * r::panels + j / 2 % r::panels) * r::panel, 16) +
                    ((j + i) % 2 * 4 + h * 2));
        products_end_group();
        if constexpr (r::turns) named_barrier_arrive(5 - group, 256);
        wait_products<1>();
        if (begins) {  // the products of the stage before are done
          if (lane < 2) barrier_arrive_at(before, lane);
          before = x_empty + 8 * at_x.stage;
        }
        if (ends) at_x.next();
      }
      barrier_arrive_warp(cells_empty + 8 * at.stage);
    }
    wait_products<0>(sums);
    unit += stop - first;

    if (a.to.kind != product_out::add_f32 &&
        !gather_sums<wide, groups>(shares, block, tile, first, a.parts, a.arrived, place_of, sums))
      continue;
    put_sums<dtype::bf16, wide>(a.to, (tile * 2 + side) * groups * 4 + warp, across * wide, sums);
  }
  cluster_barrier();  // neither block copies into the other one any more
#endif
}

// Puts x in paired order, in the workspace.
const element* in_pairs(device& d, const block_product& p) {
  auto* const to = reinterpret_cast<uint4*>(static_cast<std::byte*>(d.workspace) + parts_bytes);
  const std::uint32_t count = p.m * (p.w.cols / 16), threads = 256;
  launch(d, order_kernel, dim3((count + threads - 1) / threads), threads, 0,
         reinterpret_cast<const uint4*>(p.x), count, to);
  return reinterpret_cast<const element*>(to);
}

template <dtype type, int wide>
void start(device& d, const block_product& p) {
  using r = block_rings<type, wide>;
  const auto kernel = wide_blocks_kernel<type, wide>;
  allow_shared(d, kernel, r::bytes);
  // The map of w has the dimensions [slab, plane, 1, bytes / 8]; for gated, gate and up are one plane each.
  const std::uint32_t planes = p.kind == product_out::gated ? 2 : 1;
  const std::uint64_t cells = up(p.w.cols, cell_columns), row = cells * r::cell,  // bytes
      slabs = up(p.w.rows, cell_rows) / planes;
  const std::uint32_t tile_slabs = r::rows / 8 / planes;
  const CUtensorMap w = tensor_map<4>(d, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, CU_TENSOR_MAP_SWIZZLE_NONE,
                                      p.w.data, {row / 8, 1, planes, slabs}, {row, slabs * row, row},
                                      {r::cell / 8, 1, planes, tile_slabs});
  const element* from = p.x_order == column_order::paired ? p.x : in_pairs(d, p);
  const CUtensorMap x =
      tensor_map<2>(d, CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_SWIZZLE_128B, from, {p.w.cols, p.m},
                    {std::uint64_t{p.w.cols} * sizeof(element)}, {panel_columns, wide / 2});
  const std::uint32_t across = (p.m + wide - 1) / wide,
                      tiles = static_cast<std::uint32_t>(up(slabs, 2 * tile_slabs)),
                      chunks = static_cast<std::uint32_t>(cells);
  const wide_block_args a{{p.out, p.w.rows / planes, p.m, p.stride(), p.kind, p.gate, p.out_order},
                          static_cast<float4*>(d.workspace),
                          d.arrived,
                          across,
                          tiles,
                          chunks,
                          tile_slabs};
  const std::uint32_t lanes =
      std::min(static_cast<std::uint32_t>(d.multiprocessors) / 2 / across, tiles * chunks);
  launch_clusters(d, kernel, dim3(lanes * across * 2), dim3(2), r::threads, r::bytes, w, x, a);
}

}  // namespace

void wide_blocks(device& d, const block_product& p) {
  // Beside small weights the sums that blocks leave for one another take longer than rounding weights twice.
  const bool large = std::uint64_t{p.w.rows} * p.w.cols >= 24u << 20;
  with_block_type(p.w.type, [&](auto type) {
    if (p.m <= 32) return start<type, 32>(d, p);
    if (p.m <= 64) return start<type, 64>(d, p);
    if (p.m <= 128 || (p.m <= 256 && !large)) return start<type, 128>(d, p);
    start<type, 256>(d, p);
  });
}

}  // namespace weir::kernels::cuda
