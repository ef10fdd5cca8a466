// The product of gate and up with SwiGLU for more than 64 rows on the Hopper path, by warpgroups.
//
// A block computes 128 rows of x by `w_rows` rows of the weights, where rows of gate and up alternate in
// groups of eight, so that one thread has both numbers that it multiplies. A stage of the ring holds 64
// columns of both. One warp loads, and two warpgroups multiply 64 rows of x each. The two blocks of a cluster
// compute a tile: they have the same weights and 256 rows of x, or the same x and twice the weights where x
// has no more than 128 rows. Each of them loads one half of what they share, for both at once (multicast).
//
// Clusters stay, and take one tile after the other: while a tile is written, the next one is loaded. Every
// tile takes the same time, so `w_rows` is chosen such that no cluster waits long for the others at the end.
// The loads of the first weights begin before the kernel in front has ended.
#include <algorithm>

#include "kernels/cuda/barrier.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/stream_tile.h"
#include "kernels/cuda/tensor_map.h"
#include "kernels/cuda/wgmma.h"

namespace weir::kernels::cuda {
namespace {

constexpr int x_rows = 128;  // of a block
constexpr int groups = 2, threads = groups * 128 + 128, cluster_blocks = 2;
constexpr int x_bytes = x_rows * panel_columns * 2;

// What the two blocks of a cluster have in common.
enum class common { weights, x };

// The sizes of a block's part of a tile.
template <int w_rows>
struct tile_of {
  static constexpr int slabs = w_rows / 16;  // each eight rows of gate and the same eight of up
  static constexpr int w_bytes = w_rows * panel_columns * 2, stage = x_bytes + w_bytes;
  static constexpr int stages = static_cast<int>(most_shared / (stage + 16));
  static constexpr std::size_t bytes = stages * (stage + 16);  // all stages, then two barriers for each
};

// The arguments of the kernel besides the maps of w and x.
struct tile_args {
  element* out;
  std::uint32_t width, m;  // columns and rows of the output
  std::uint32_t x_tiles;   // tiles along x; those with the same weights follow one another
  std::uint32_t tiles, chunks;  // tiles of the product; stages that a tile takes
  std::uint64_t weights_hint;   // how the L2 cache treats the weights
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ std::uint32_t rank_in_cluster() {
  std::uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

// The ring of a block: shared-memory addresses.
template <int w_rows>
struct ring {
  std::uint32_t base;
  __device__ std::uint32_t x(int stage) const { return base + stage * tile_of<w_rows>::stage; }
  __device__ std::uint32_t w(int stage) const { return x(stage) + x_bytes; }
  __device__ std::uint32_t full(int stage) const {
    return base + tile_of<w_rows>::stages * tile_of<w_rows>::stage + stage * 8;
  }
  __device__ std::uint32_t empty(int stage) const { return full(stage + tile_of<w_rows>::stages); }
};

// The first row of x, and the first slab, of a block's part of a tile.
template <common same>
__device__ __forceinline__ std::uint32_t row_of(const tile_args& a, std::uint32_t tile, std::uint32_t rank) {
  return same == common::x ? 0 : (tile % a.x_tiles * cluster_blocks + rank) * x_rows;
}
template <common same, int w_rows>
__device__ __forceinline__ std::uint32_t slab_of(const tile_args& a, std::uint32_t tile, std::uint32_t rank) {
  return (same == common::x ? tile * cluster_blocks + rank : tile / a.x_tiles) * tile_of<w_rows>::slabs;
}

// Loads all stages of the block, by one thread. The weights of the first stages do not wait for the kernel in
// front.
template <common same, int w_rows>
__device__ void load(const tile_args& a, const CUtensorMap& w, const CUtensorMap& x, const ring<w_rows>& r,
                     std::uint32_t cluster, std::uint32_t clusters, std::uint32_t rank) {
  using t = tile_of<w_rows>;
  constexpr std::uint16_t both = 3;  // blocks of the cluster
  const auto ask_weights = [&](std::uint32_t tile, std::uint32_t chunk, int stage) {
    barrier_expect(r.full(stage), t::stage);
    const auto column = static_cast<int>(chunk * panel_columns);
    const std::uint32_t slab = slab_of<same, w_rows>(a, tile, rank);
    if constexpr (same == common::x)
      copy_slabs_once(r.w(stage), w, column, static_cast<int>(slab), r.full(stage));
    else
      copy_slabs_to(both, r.w(stage) + rank * (t::w_bytes / 2), w, column,
                    static_cast<int>(slab + rank * (t::slabs / 2)), r.full(stage), a.weights_hint);
  };
  const auto early = std::min<std::uint32_t>(t::stages, a.chunks);  // stages of the first tile
  for (std::uint32_t c = 0; c < early; ++c) ask_weights(cluster, c, static_cast<int>(c));
  wait_for_previous();
  turn_of_ring<t::stages> at;
  for (std::uint32_t tile = cluster; tile < a.tiles; tile += clusters)
    for (std::uint32_t chunk = 0; chunk < a.chunks; ++chunk, at.next()) {
      if (tile != cluster || chunk >= early) {
        barrier_wait(r.empty(at.stage), at.phase ^ 1);
        ask_weights(tile, chunk, at.stage);
      }
      const auto column = static_cast<int>(chunk * panel_columns);
      const std::uint32_t row = row_of<same>(a, tile, rank);
      if constexpr (same == common::x)
        copy_box_to(both, r.x(at.stage) + rank * (x_bytes / 2), x, column,
                    static_cast<int>(row + rank * (x_rows / 2)), r.full(at.stage));
      else
        copy_box(r.x(at.stage), x, column, static_cast<int>(row), r.full(at.stage));
    }
}

// The outputs of one slab in one row of x: two columns, of which a thread has gate and up.
template <dtype type>
__device__ __forceinline__ std::uint32_t gated(const float* gate, const float* up) {
  const auto one = [](float g, float u) { return __fdividef(g, 1.0f + __expf(-g)) * u; };
  return pair_of<type>(one(gate[0], up[0]), one(gate[1], up[1]));
}

// Writes the thread's outputs of row `row`; of each slab its sums are those at `sums`, + 1 (gate), + 4 and
// + 5 (up). Neighbouring lanes exchange what they have of two slabs, so that every write is 8 bytes. All
// lanes of a warp call it.
template <dtype type, int w_rows>
__device__ __forceinline__ void put_row(const tile_args& a, std::uint32_t row, std::uint32_t slab,
                                        const float* sums) {
  const bool odd = threadIdx.x % 2 != 0;
  element* to = a.out + std::size_t{row} * a.width;
#pragma unroll
  for (int j = 0; j < tile_of<w_rows>::slabs; j += 2) {
    const std::uint32_t first = gated<type>(sums + 8 * j, sums + 8 * j + 4),
                        second = gated<type>(sums + 8 * j + 8, sums + 8 * j + 12),
                        other = __shfl_xor_sync(~0u, odd ? first : second, 1);
    const std::uint32_t column = (slab + j + odd) * 8 + threadIdx.x % 4 / 2 * 4;
    if (row < a.m && column < a.width)
      *reinterpret_cast<uint2*>(to + column) = odd ? make_uint2(other, second) : make_uint2(first, other);
  }
}

// Multiplies all tiles of the block, by one warpgroup.
template <dtype type, common same, int w_rows>
__device__ void compute(const tile_args& a, const ring<w_rows>& r, std::uint32_t cluster,
                        std::uint32_t clusters, std::uint32_t rank) {
  const std::uint32_t group = threadIdx.x / 128, thread = threadIdx.x % 128;
  // A stage is free when the warpgroups of both blocks are done with it.
  const auto leave_stage = [&](int stage) {
    if (thread < cluster_blocks) barrier_arrive_at(r.empty(stage), thread);
  };
  turn_of_ring<tile_of<w_rows>::stages> at;
  for (std::uint32_t tile = cluster; tile < a.tiles; tile += clusters) {
    float sums[w_rows / 2];
    for (std::uint32_t chunk = 0; chunk < a.chunks; ++chunk, at.next()) {
      barrier_wait(r.full(at.stage), at.phase);
      const std::uint64_t x = panels_at(r.x(at.stage) + group * (x_bytes / groups), 16),
                          w = panels_at(r.w(at.stage), 16);
      products_begin();
#pragma unroll
      for (int i = 0; i < panel_columns / 16; ++i)
        multiply_ss<type>(sums, x + i * 2, w + i * 2, i > 0 || chunk > 0);
      products_end_group();
      wait_products<1>();
      if (chunk > 0) leave_stage(at.before());
    }
    wait_products<0>(sums);
    leave_stage(at.before());
    const std::uint32_t row = row_of<same>(a, tile, rank) + group * 64 + thread / 32 * 16 + thread % 32 / 4,
                        slab = slab_of<same, w_rows>(a, tile, rank);
    put_row<type, w_rows>(a, row, slab, sums);
    put_row<type, w_rows>(a, row + 8, slab, sums + 2);
  }
}
#endif

template <dtype type, common same, int w_rows>
__global__ void __launch_bounds__(threads, 1)
    swiglu_kernel(const __grid_constant__ CUtensorMap w, const __grid_constant__ CUtensorMap x,
                  const __grid_constant__ tile_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared[];
  const ring<w_rows> r{shared_address(shared)};
  const std::uint32_t rank = rank_in_cluster(), clusters = gridDim.x / cluster_blocks,
                      cluster = blockIdx.x / cluster_blocks;
  if (threadIdx.x == 0) {
    for (int i = 0; i < tile_of<w_rows>::stages; ++i) {
      barrier_init(r.full(i), 1);
      barrier_init(r.empty(i), cluster_blocks * groups);
    }
    barrier_inits_end();
  }
  cluster_barrier();
  let_next_start();
  if (threadIdx.x >= groups * 128) {
    keep_registers<40>();
    if (threadIdx.x == groups * 128) load<same, w_rows>(a, w, x, r, cluster, clusters, rank);
  } else {
    take_registers<232>();
    wait_for_previous();
    compute<type, same, w_rows>(a, r, cluster, clusters, rank);
  }
  cluster_barrier();  // the other block writes no more to this block's shared memory
#endif
}

std::uint32_t parts(std::uint32_t all, std::uint32_t each) { return (all + each - 1) / each; }

std::uint32_t clusters_of(const device& d) {
  return static_cast<std::uint32_t>(d.multiprocessors) / cluster_blocks;
}

// How a product is divided: the rows of the weights of a block, and the time that it takes, in units of a row
// of the weights of one tile.
struct division {
  std::uint32_t w_rows, time;
};

division divide(const device& d, const product& p) {
  division best{0, ~0u};
  const std::uint32_t x_tiles = parts(p.m, cluster_blocks * x_rows), w_blocks = p.m <= x_rows ? 2 : 1;
  for (const std::uint32_t w_rows : {256u, 224u, 192u, 128u}) {
    const std::uint32_t tiles = parts(p.n, w_rows * w_blocks) * x_tiles,
                        time = parts(tiles, clusters_of(d)) * w_rows;
    if (time < best.time) best = {w_rows, time};
  }
  return best;
}

template <dtype type, common same, int w_rows>
void start(device& d, const product& p) {
  using t = tile_of<w_rows>;
  constexpr bool same_x = same == common::x;
  // Rows in a box of x, slabs in a box of the weights: all, or one half of what the blocks share.
  constexpr std::uint32_t x_box = same_x ? x_rows / 2 : x_rows, w_box = same_x ? t::slabs : t::slabs / 2;
  const auto kernel = swiglu_kernel<type, same, w_rows>;
  allow_shared(d, kernel, t::bytes);
  // The map of w has the dimensions [slab, plane, 8 rows, k]; gate and up are one plane each.
  const std::uint32_t width = p.n / 2;
  const std::uint64_t row = std::uint64_t{p.k} * 2;  // bytes
  const CUtensorMap w = tensor_map<4>(d, elements_as, swizzled, p.w, {p.k, 8, 2, width / 8},
                                      {row, width * row, 8 * row}, {panel_columns, 8, 2, w_box});
  const CUtensorMap x =
      tensor_map<2>(d, elements_as, swizzled, p.x, {p.k, p.m}, {row}, {panel_columns, x_box});
  const std::uint32_t x_tiles = parts(p.m, cluster_blocks * x_rows),
                      tiles = parts(p.n, w_rows * (same_x ? 2 : 1)) * x_tiles;
  const tile_args a{static_cast<element*>(p.out),
                    width,
                    p.m,
                    x_tiles,
                    tiles,
                    parts(p.k, panel_columns),
                    x_tiles == 1 ? evict_first : evict_normal};
  launch_clusters(d, kernel, dim3(cluster_blocks * std::min(tiles, clusters_of(d))), dim3(cluster_blocks),
                  threads, t::bytes, w, x, a);
}

template <dtype type, common same>
void start(device& d, const product& p) {
  switch (divide(d, p).w_rows) {
    case 256:
      return start<type, same, 256>(d, p);
    case 224:
      return start<type, same, 224>(d, p);
    case 192:
      return start<type, same, 192>(d, p);
    default:
      return start<type, same, 128>(d, p);
  }
}

template <dtype type>
void start(device& d, const product& p) {
  if (p.m <= x_rows) return start<type, common::x>(d, p);
  start<type, common::weights>(d, p);
}

}  // namespace

bool can_swiglu_wgmma(const device& d, const product& p) {
  const auto aligned = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; };
  return is_element(p.type) && !d.deterministic && d.encode_map && p.kind == product_out::silu && p.m > 64 &&
         p.n % 16 == 0 && p.k % 8 == 0 && !p.out_stride && aligned(p.w) && aligned(p.x);
}

bool swiglu_wgmma_pays(const device& d, const product& p) {
  if (!can_swiglu_wgmma(d, p) || p.m <= 80) return false;
  // Few rows are bound by the reading of the weights, in which then nearly all blocks have to take part.
  const std::uint64_t all = std::uint64_t{divide(d, p).time} * clusters_of(d) * cluster_blocks;
  if (p.m <= x_rows) return 10 * std::uint64_t{p.n} >= 9 * all;
  return 5 * std::uint64_t{p.m} * p.n >= 4 * all * x_rows;
}

void swiglu_wgmma(device& d, const product& p) {
  if (p.type == dtype::f16) return start<dtype::f16>(d, p);
  start<dtype::bf16>(d, p);
}

}  // namespace weir::kernels::cuda
