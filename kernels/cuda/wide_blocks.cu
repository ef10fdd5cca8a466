// Products of more than 8 rows with quantised weights on the Hopper path. The weights are read as they are
// stored, and each is rounded to bf16 on its way to wgmma.
//
// Blocks, units and the sums of shared tiles are as in stream_wide.cu; a unit is one cell's columns of a tile.
// A stage of the ring has the cells of a unit, which arrive by tensor copies, and the unit's columns of x.
// Warpgroups round the weights of their 64 rows in registers, as the operand of wgmma that may lie there,
// while their earlier products are computed.
//
// Of each 16 columns a lane of a cell has four neighbours (block_layout.h), where wgmma takes a pair from
// each half. So x is in paired order (element.h): its kernel has written it so, or another kernel changes it
// first.
//
// More than `wide` rows of x are divided among the blocks: blocks that multiply the same weights are
// neighbours, so that only the first of them reads the weights from memory.
#include <algorithm>

#include "kernels/cuda/block_rounding.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/stream_blocks.h"
#include "kernels/cuda/stream_tile.h"
#include "kernels/cuda/tensor_map.h"
#include "kernels/cuda/wgmma.h"

namespace weir::kernels::cuda {
namespace {

// The workspace of the device: first sums of shared tiles, then x in order.
constexpr std::size_t parts_bytes = device::workspace_bytes / 2;

// The sizes of a block and of its two rings, for `groups` warpgroups and up to `wide` rows of x.
template <dtype type, int wide, int groups>
struct block_rings {
  static constexpr int loaders = 128;  // threads that load, behind those that multiply
  static constexpr int rows = groups * 64, threads = groups * 128 + loaders;  // rows: of weights in a block's tile
  static constexpr int panel = wide * panel_columns * 2, half = panel / 2;    // bytes
  static constexpr int panels = wide <= 128 ? 2 : 1;                          // of a stage of x
  static constexpr int cell = cell_form(type).bytes, cells = rows / 8 * cell;  // bytes: of a cell, and of a tile's
  static constexpr int room = static_cast<int>(most_shared) - 1024;
  static constexpr int weights = std::clamp(room / (cells + 2 * panel), 3, 8);                     // stages
  static constexpr int xs = std::min((room - weights * cells) / (panels * panel), 2 * weights / panels);  // stages of x
  static constexpr std::uint32_t cells_at = xs * panels * panel, barriers_at = cells_at + weights * cells;
  static constexpr std::size_t bytes = barriers_at + (2 * weights + 2 * xs + 1) * 8;
  static_assert(xs >= 3 && bytes <= most_shared);
  // Registers of a thread: as the compiler gives them to all, then those of threads that load and multiply.
  static constexpr int even = 65536 / threads / 8 * 8, few = 24,
                       many = std::min(even + (even - few) / groups / 8 * 8, 240);
};

struct wide_block_args {
  void* out;
  float4* parts;      // as in wide_args
  unsigned* arrived;  // [blocks]: how many warpgroups have left sums for the tile of this one
  // n: rows of w. across: blocks that multiply the same weights. tiles: tiles of the weights. chunks: units of
  // a tile. slabs: slabs of a tile in the last dimension of the weights' map.
  std::uint32_t n, m, stride, across, tiles, chunks, slabs;
  product_out kind;
  column_order out_order;
};

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

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Where column `column` is in a row of that order.
__device__ __forceinline__ std::uint32_t place_in(column_order order, std::uint32_t column) {
  if (order == column_order::plain) return column;
  return (column & ~15u) | (column & 2) << 2 | (column & 12) >> 1 | (column & 1);
}

__device__ __forceinline__ void put(const wide_block_args& a, std::uint32_t row, std::uint32_t column,
                                    float v) {
  if (row >= a.n || column >= a.m) return;
  const std::size_t at = std::size_t{column} * a.stride + row;
  if (a.kind == product_out::f32)
    static_cast<float*>(a.out)[at] = v;
  else if (a.kind == product_out::add_f32)
    atomicAdd(static_cast<float*>(a.out) + at, v);
  else
    static_cast<element*>(a.out)[at] = element_of<dtype::bf16>(v);
}

// Writes the calling warp's sums of slab `slab` (put_slab in stream_tile.h) and of the rows of x from `first`
// on.
template <int wide>
__device__ __forceinline__ void put_sums(const wide_block_args& a, std::uint32_t slab, std::uint32_t first,
                                         const float (&sums)[wide / 2]) {
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < wide / 2; j += 4)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t column = first + j * 2 + lane % 4 * 2 + i;
      const float v = sums[j + i], w = sums[j + i + 2];
      if (a.kind == product_out::silu) {
        const std::uint32_t row = slab * 8 + lane / 4;
        if (row < a.n / 2) put(a, place_in(a.out_order, row), column, v / (1.0f + __expf(-v)) * w);
      } else {
        put(a, slab * 16 + lane / 4, column, v);
        put(a, slab * 16 + lane / 4 + 8, column, w);
      }
    }
}

// Rounds the warp's weights of columns 32 * j on in two rows of cells: the operands of two products.
template <dtype type>
__device__ __forceinline__ void round_columns(const cell_row<type> (&rows)[2], int j, std::uint32_t (&w)[2][4]) {
  std::uint32_t pairs[2][4];
#pragma unroll
  for (int s = 0; s < 2; ++s) round_cell(rows[s], j, pairs[s]);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    w[0][i] = pairs[i % 2][i / 2];
    w[1][i] = pairs[i % 2][2 + i / 2];
  }
}
#endif

template <dtype type, int wide, int groups>
__global__ void __launch_bounds__(block_rings<type, wide, groups>::threads, 1)
    wide_blocks_kernel(const __grid_constant__ CUtensorMap w, const __grid_constant__ CUtensorMap x,
                       const wide_block_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using r = block_rings<type, wide, groups>;
  extern __shared__ __align__(1024) unsigned char shared[];
  const std::uint32_t base = shared_address(shared), cells_full = base + r::barriers_at,
                      cells_empty = cells_full + r::weights * 8, x_full = cells_empty + r::weights * 8,
                      x_empty = x_full + r::xs * 8;  // of x_empty there is one more
  // Blocks are numbered from the last one, so that the blocks that share the tile of this one have started
  // already.
  const std::uint32_t index = gridDim.x - 1 - blockIdx.x, side = index % 2, lanes = gridDim.x / 2 / a.across,
                      block = index / 2 / a.across, across = index / 2 % a.across, units = a.tiles * a.chunks;
  const auto begin_of = [&](std::uint32_t b) { return b * units / lanes; };
  const auto block_of = [&](std::uint32_t unit) { return ((unit + 1) * lanes - 1) / units; };
  const std::uint32_t begin = begin_of(block), end = begin_of(block + 1);

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
  // The barrier of the panel before this one; at first one that nobody waits for, so that wgmma is not held up
  // by a branch.
  std::uint32_t before = x_empty + 8 * r::xs;
  // The index of the block that has part `b` of the units of the same rows of x and weights.
  const auto block_at = [&](std::uint32_t b) { return (b * a.across + across) * 2 + side; };
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
      for (int j = 0; j < 4; ++j) {
        if (j * rows[0].units % 4 == 0)
#pragma unroll
          for (int s = 0; s < 2; ++s)
            rows[s].load_shared_codes(cells + s * r::cell, lane, j * rows[0].units / 4);
        const std::uint32_t panel = base + (at_x.stage * r::panels + j / 2 % r::panels) * r::panel;
        const bool begins = j % (2 * r::panels) == 0, ends = j % (2 * r::panels) == 2 * r::panels - 1;  // a stage of x
        std::uint32_t operands[2][4];
        round_columns(rows, j, operands);
        if (begins) barrier_wait(x_full + 8 * at_x.stage, at_x.phase);
        products_begin();
#pragma unroll
        for (int h = 0; h < 2; ++h)
          multiply_rows<dtype::bf16>(sums, operands[h], panels_at(panel, 16) + (j % 2 * 4 + h * 2));
        products_end_group();
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

    if (a.kind != product_out::add_f32) {
      if (first != 0) {
        leave_part<wide, groups>(a.parts, a.arrived, index * groups + group, block_at(block_of(tile * a.chunks)),
                                 sums);
        continue;
      }
      // The number of blocks behind this one that share the tile.
      const std::uint32_t others = block_of(tile * a.chunks + a.chunks - 1) - block;
      if (others) {
        while (read_count(a.arrived + index) != others * groups) __nanosleep(20);
        for (std::uint32_t i = 1; i <= others; ++i)
          add_part<wide>(a.parts, block_at(block + i) * groups + group, sums);
        named_barrier(1 + groups, groups * 128);  // all threads have read the counter
        if (threadIdx.x == 0) a.arrived[index] = 0;
      }
    }
    put_sums<wide>(a, (tile * 2 + side) * groups * 4 + warp, across * wide, sums);
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

template <dtype type, int wide, int groups>
void start(device& d, const block_product& p) {
  using r = block_rings<type, wide, groups>;
  const auto kernel = wide_blocks_kernel<type, wide, groups>;
  allow_shared(d, kernel, r::bytes);
  // The map of w has the dimensions [slab, plane, 1, bytes / 8]; for silu, gate and up are one plane each.
  const std::uint32_t planes = p.kind == product_out::silu ? 2 : 1;
  const std::uint64_t cells = up(p.w.cols, cell_columns), row = cells * r::cell,  // bytes
      slabs = up(p.w.rows, cell_rows) / planes;
  const std::uint32_t tile_slabs = r::rows / 8 / planes;
  const CUtensorMap w =
      tensor_map<4>(d, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, CU_TENSOR_MAP_SWIZZLE_NONE, p.w.data,
                    {row / 8, 1, planes, slabs}, {row, slabs * row, row}, {r::cell / 8, 1, planes, tile_slabs});
  const element* from = p.x_order == column_order::paired ? p.x : in_pairs(d, p);
  const CUtensorMap x = tensor_map<2>(d, CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_SWIZZLE_128B, from,
                                      {p.w.cols, p.m}, {std::uint64_t{p.w.cols} * sizeof(element)},
                                      {panel_columns, wide / 2});
  const std::uint32_t across = (p.m + wide - 1) / wide,
                      tiles = static_cast<std::uint32_t>(up(slabs, 2 * tile_slabs)),
                      chunks = static_cast<std::uint32_t>(cells);
  const wide_block_args a{p.out,
                          static_cast<float4*>(d.workspace),
                          d.arrived,
                          p.w.rows,
                          p.m,
                          p.stride(),
                          across,
                          tiles,
                          chunks,
                          tile_slabs,
                          p.kind,
                          p.out_order};
  const std::uint32_t lanes = std::min(static_cast<std::uint32_t>(d.multiprocessors) / 2 / across, tiles * chunks);
  launch_clusters(d, kernel, dim3(lanes * across * 2), dim3(2), r::threads, r::bytes, w, x, a);
}

}  // namespace

bool can_wide_blocks(const device& d, const block_product& p) {
  return d.path == code_path::hopper && d.encode_map && !d.deterministic && p.m <= most_wide_block_rows &&
         (p.kind != product_out::silu || p.w.rows % 16 == 0) && reinterpret_cast<std::uintptr_t>(p.x) % 16 == 0 &&
         std::uint64_t{p.m} * p.w.cols * sizeof(element) <= device::workspace_bytes - parts_bytes;
}

void wide_blocks(device& d, const block_product& p) {
  with_block_type(p.w.type, [&](auto type) {
    if (p.m <= 32) return start<type, 32, 2>(d, p);
    if (p.m <= 64) return start<type, 64, 2>(d, p);
    // Beside small weights the sums that blocks leave for one another take longer than rounding weights twice.
    if (p.m <= 128 || std::uint64_t{p.w.rows} * p.w.cols < 48u << 20) return start<type, 128, 2>(d, p);
    start<type, 256, 2>(d, p);
  });
}

}  // namespace weir::kernels::cuda
