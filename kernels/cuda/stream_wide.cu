// Products of up to 64 rows: the weights are read once, at the speed of the memory, as in stream.cu, but
// multiplied by a warpgroup from shared memory, the weights as the operand of 64 rows.
//
// A block has one warp that asks and a warpgroup that multiplies. The ring's stages hold 128 or 256 columns
// of a tile's weights and of x. Work is counted in units, a stage of a tile; every block gets the same number
// of consecutive ones, so that all of them read until the end («stream-K», Osama et al. 2023): a tile may be
// shared by several. Weights of the first stages are asked for before the kernel waits for the one that makes
// x.
//
// Shared tiles: a residual is added to by all who have a part. Else the block with the first part of K
// writes the tile, and the others leave theirs in `parts` and count in `arrived`. Those work on that tile
// first of all, that one last of all, so it seldom waits; and it has a higher number than they, so that they
// have started.
#include <cuda.h>

#include <algorithm>

#include "kernels/cuda/barrier.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/wgmma.h"

namespace weir::kernels::cuda {
namespace {

constexpr int columns = 64;  // of a panel
constexpr int warps = 5;     // the last one asks
constexpr std::uint32_t most_rows = 64;

// `wide`: rows of x, filled up; `blocks`: of 64 rows of weights in a tile.
template <int wide, int blocks>
struct ring {
  static constexpr int atoms = wide <= 16 && blocks == 1 ? 4 : 2;  // swizzled rows that make a stage
  static constexpr int weights = blocks * 64 * columns * 2, x = wide * columns * 2;  // bytes
  static constexpr int stage = atoms * (weights + x), stages = std::min(16, (224 << 10) / stage);
  static constexpr std::size_t bytes = stages * (stage + 16);
};

// Gate and up have a block of a tile each.
template <product_out kind>
constexpr int blocks_of = kind == product_out::silu ? 2 : 1;

struct wide_args {
  void* out;
  float4* parts;      // [blocks of the grid, blocks * wide / 8, 128]
  unsigned* arrived;  // [blocks of the grid]
  std::uint32_t n, m, tiles, chunks;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// One element of the tile: row of the weights, row of x.
template <dtype type, product_out kind>
__device__ __forceinline__ void put(const wide_args& a, std::uint32_t row, std::uint32_t column, float v) {
  const std::size_t at = std::size_t{column} * a.n + row;
  if constexpr (kind == product_out::element) static_cast<element*>(a.out)[at] = element_of<type>(v);
  if constexpr (kind == product_out::f32) static_cast<float*>(a.out)[at] = v;
  if constexpr (kind == product_out::add_f32) atomicAdd(static_cast<float*>(a.out) + at, v);
}

template <dtype type, product_out kind, int wide, int blocks>
__device__ __forceinline__ void put_tile(const wide_args& a, std::uint32_t tile,
                                         const float (&sums)[blocks][wide / 2]) {
  const std::uint32_t lane = threadIdx.x % 32, in_block = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < wide / 2; ++j) {
    const std::uint32_t column = j / 4 * 8 + lane % 4 * 2 + j % 2, half = j % 4 >= 2 ? 8 : 0;
    if (column >= a.m) continue;
    if constexpr (kind == product_out::silu) {
      const std::uint32_t row = tile * 64 + in_block + half;
      const float gate = sums[0][j], up = sums[1][j];
      if (row < a.n / 2)
        static_cast<element*>(a.out)[std::size_t{column} * (a.n / 2) + row] =
            element_of<type>(gate / (1.0f + __expf(-gate)) * up);
    } else {
#pragma unroll
      for (int b = 0; b < blocks; ++b) {
        const std::uint32_t row = (tile * blocks + b) * 64 + in_block + half;
        if (row < a.n) put<type, kind>(a, row, column, sums[b][j]);
      }
    }
  }
}

__device__ __forceinline__ unsigned read_count(const unsigned* at) {
  unsigned v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
  return v;
}
__device__ __forceinline__ void group_sync() { asm volatile("bar.sync 1, 128;" ::: "memory"); }

template <int wide, int blocks>
__device__ __forceinline__ float4* part_of(const wide_args& a, std::uint32_t block) {
  return a.parts + std::size_t{block} * (blocks * wide / 8 * 128) + threadIdx.x;
}

template <int wide, int blocks>
__device__ __forceinline__ void leave_part(const wide_args& a, std::uint32_t block, std::uint32_t owner,
                                           const float (&sums)[blocks][wide / 2]) {
  float4* to = part_of<wide, blocks>(a, block);
#pragma unroll
  for (int b = 0; b < blocks; ++b)
#pragma unroll
    for (int j = 0; j < wide / 8; ++j)
      __stcg(to + (b * wide / 8 + j) * 128,
             make_float4(sums[b][4 * j], sums[b][4 * j + 1], sums[b][4 * j + 2], sums[b][4 * j + 3]));
  __threadfence();
  group_sync();
  if (threadIdx.x == 0) atomicAdd(a.arrived + owner, 1);
}

template <int wide, int blocks>
__device__ __forceinline__ void add_parts(const wide_args& a, std::uint32_t first, std::uint32_t last,
                                          float (&sums)[blocks][wide / 2]) {
  for (std::uint32_t of = first; of <= last; ++of) {
    const float4* from = part_of<wide, blocks>(a, of);
#pragma unroll
    for (int b = 0; b < blocks; ++b)
#pragma unroll
      for (int j = 0; j < wide / 8; ++j) {
        const float4 v = __ldcg(from + (b * wide / 8 + j) * 128);
        sums[b][4 * j] += v.x;
        sums[b][4 * j + 1] += v.y;
        sums[b][4 * j + 2] += v.z;
        sums[b][4 * j + 3] += v.w;
      }
  }
}
#endif

template <dtype type, product_out kind, int wide, int blocks>
__global__ void __launch_bounds__(warps * 32, 1)
    wide_kernel(const __grid_constant__ CUtensorMap w, const __grid_constant__ CUtensorMap x,
                const wide_args a) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using r = ring<wide, blocks>;
  constexpr int stages = r::stages, atoms = r::atoms;
  extern __shared__ __align__(1024) unsigned char shared[];
  const std::uint32_t base = shared_address(shared), full = base + stages * r::stage,
                      empty = full + stages * 8;
  // Blocks count from the last one.
  const std::uint32_t block = gridDim.x - 1 - blockIdx.x, units = a.tiles * a.chunks;
  const auto begin_of = [&](std::uint32_t b) { return b * units / gridDim.x; };
  const auto block_of = [&](std::uint32_t unit) { return ((unit + 1) * gridDim.x - 1) / units; };
  const std::uint32_t begin = begin_of(block), end = begin_of(block + 1);

  const auto ask_weights = [&](std::uint32_t unit, int stage) {
    const std::uint32_t tile = unit / a.chunks, chunk = unit % a.chunks;
    barrier_expect(full + 8 * stage, r::stage);
#pragma unroll
    for (int i = 0; i < atoms; ++i)
      copy_boxes_once(base + stage * r::stage + i * r::weights, w, (chunk * atoms + i) * columns,
                      tile * 64 * (kind == product_out::silu ? 1 : blocks), full + 8 * stage);
  };
  const auto ask_x = [&](std::uint32_t unit, int stage) {
#pragma unroll
    for (int i = 0; i < atoms; ++i)
      copy_box(base + stage * r::stage + atoms * r::weights + i * r::x, x,
               (unit % a.chunks * atoms + i) * columns, 0, full + 8 * stage);
  };
  const bool asks = threadIdx.x == (warps - 1) * 32;
  if (asks) {
    for (int i = 0; i < stages; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, 1);
    }
    barrier_inits_end();
    for (std::uint32_t i = 0; i < stages && begin + i < end; ++i) ask_weights(begin + i, i);
  }
  let_next_start();
  __syncthreads();
  wait_for_previous();

  if (threadIdx.x >= (warps - 1) * 32) {
    if (!asks) return;
    for (std::uint32_t i = 0; i < stages && begin + i < end; ++i) ask_x(begin + i, i);
    int stage = 0;
    std::uint32_t phase = 0;
    for (std::uint32_t unit = begin + stages; unit < end; ++unit) {
      barrier_wait(empty + 8 * stage, phase);
      ask_weights(unit, stage);
      ask_x(unit, stage);
      if (++stage == stages) {
        stage = 0;
        phase ^= 1;
      }
    }
    return;
  }

  int stage = 0;
  std::uint32_t phase = 0;
  for (std::uint32_t unit = begin; unit < end;) {
    const std::uint32_t tile = unit / a.chunks, first = unit % a.chunks,
                        stop = std::min(a.chunks, first + end - unit);
    const bool owns = first == 0;  // of the others of a shared tile, those after this block
    const std::uint32_t others = owns ? block_of(tile * a.chunks + a.chunks - 1) - block : 0;
    float sums[blocks][wide / 2] = {},
                              rest[blocks][wide / 2] = {};  // apart: products wait for a sum's other writers
    bool joined = others == 0 || kind == product_out::add_f32;
    if (!joined && read_count(a.arrived + block) == others) {
      add_parts<wide, blocks>(a, block + 1, block + others, rest);
      joined = true;
    }
    for (std::uint32_t chunk = first; chunk < stop; ++chunk) {
      barrier_wait(full + 8 * stage, phase);
      products_begin();
#pragma unroll
      for (int i = 0; i < atoms * columns / 16; ++i) {
        const int atom = i / 4;
        const std::uint32_t weights = base + stage * r::stage + atom * r::weights,
                            rows = base + stage * r::stage + atoms * r::weights + atom * r::x;
#pragma unroll
        for (int b = 0; b < blocks; ++b)
          multiply_ss<type>(sums[b], panels_at(weights + b * 64 * columns * 2, 16) + i % 4 * 2,
                            panels_at(rows, 16) + i % 4 * 2, 1);
      }
      products_end_group();
      wait_products<1>();
      if (chunk > first && threadIdx.x == 0) barrier_arrive(empty + 8 * ((stage ? stage : stages) - 1));
      if (++stage == stages) {
        stage = 0;
        phase ^= 1;
      }
    }
#pragma unroll
    for (int b = 0; b < blocks; ++b) wait_products<0>(sums[b]);
    if (threadIdx.x == 0) barrier_arrive(empty + 8 * ((stage ? stage : stages) - 1));
    unit += stop - first;

    if (kind != product_out::add_f32 && !owns) {
      leave_part<wide, blocks>(a, block, block_of(tile * a.chunks), sums);
      continue;
    }
    if (!joined) {
      while (read_count(a.arrived + block) != others) __nanosleep(20);
      add_parts<wide, blocks>(a, block + 1, block + others, rest);
    }
    if (kind != product_out::add_f32 && others) {
      group_sync();  // all have seen the count
      if (threadIdx.x == 0) a.arrived[block] = 0;
    }
#pragma unroll
    for (int b = 0; b < blocks; ++b)
#pragma unroll
      for (int j = 0; j < wide / 2; ++j) sums[b][j] += rest[b][j];
    put_tile<type, kind, wide, blocks>(a, tile, sums);
  }
#endif
}

using encode_function = decltype(&cuTensorMapEncodeTiled);

// [planes, rows, k] in boxes of `box_rows` rows (of each plane) by 64 columns. They are moved as 16 bits of
// whatever type.
CUtensorMap map_of(device& d, const void* at, std::uint64_t k, std::uint64_t rows, std::uint32_t box_rows,
                   std::uint64_t planes = 0) {
  CUtensorMap map{};
  const cuuint64_t sizes[] = {k, rows, planes}, strides[] = {k * 2, rows * k * 2};
  const cuuint32_t box[] = {columns, box_rows, static_cast<cuuint32_t>(planes)}, steps[] = {1, 1, 1};
  const CUresult e = reinterpret_cast<encode_function>(d.encode_map)(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT16, planes ? 3 : 2, const_cast<void*>(at), sizes, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  WEIR_CUDA(d, e == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue);
  return map;
}

template <dtype type, product_out kind, int wide>
void start(device& d, const product& p) {
  constexpr int blocks = blocks_of<kind>;
  constexpr bool halves = kind == product_out::silu;
  using r = ring<wide, blocks>;
  const auto kernel = wide_kernel<type, kind, wide, blocks>;
  allow_shared(d, kernel, r::bytes);
  const CUtensorMap w =
      map_of(d, p.w, p.k, halves ? p.n / 2 : p.n, halves ? 64 : 64 * blocks, halves ? 2 : 1);
  const CUtensorMap x = map_of(d, p.x, p.k, p.m, wide);
  const std::uint32_t rows = halves ? p.n / 2 : p.n, tile_rows = halves ? 64 : 64 * blocks;
  const wide_args a{p.out,
                    static_cast<float4*>(d.workspace),
                    d.arrived,
                    p.n,
                    p.m,
                    (rows + tile_rows - 1) / tile_rows,
                    (p.k + r::atoms * columns - 1) / (r::atoms * columns)};
  const unsigned grid = std::min(static_cast<unsigned>(d.multiprocessors), a.tiles * a.chunks);
  launch(d, kernel, dim3(grid), warps * 32, r::bytes, w, x, a);
}

template <dtype type, product_out kind>
void start(device& d, const product& p) {
  if (p.m <= 8) return start<type, kind, 8>(d, p);
  if (p.m <= 16) return start<type, kind, 16>(d, p);
  if (p.m <= 32) return start<type, kind, 32>(d, p);
  if (p.m <= 48) return start<type, kind, 48>(d, p);
  start<type, kind, 64>(d, p);
}

template <dtype type>
void start(device& d, const product& p) {
  switch (p.kind) {
    case product_out::element:
      return start<type, product_out::element>(d, p);
    case product_out::f32:
      return start<type, product_out::f32>(d, p);
    case product_out::add_f32:
      return start<type, product_out::add_f32>(d, p);
    case product_out::silu:
      return start<type, product_out::silu>(d, p);
  }
}

}  // namespace

bool open_wide(device& d) {
#ifdef WEIR_CUDA_90A
  if (d.capability != 90 || d.shared_per_block < ring<32, 2>::bytes) return true;
  cudaDriverEntryPointQueryResult found;
  WEIR_CUDA(d, cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &d.encode_map, 12000,
                                                cudaEnableDefault, &found));
  const std::size_t bytes = static_cast<std::size_t>(d.multiprocessors) * sizeof(unsigned);
  WEIR_CUDA(d, cudaMalloc(&d.arrived, bytes));
  WEIR_CUDA(d, cudaMemsetAsync(d.arrived, 0, bytes, d.stream));
#endif
  return !d.failed();
}

bool can_stream_wide(const device& d, const product& p) {
  const auto aligned = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; };
  return is_element(p.type) && !d.deterministic && d.encode_map && p.m <= most_rows && p.n % 8 == 0 &&
         p.k % 8 == 0 && aligned(p.w) && aligned(p.x);
}

void stream_wide_product(device& d, const product& p) {
  if (p.type == dtype::f16) return start<dtype::f16>(d, p);
  start<dtype::bf16>(d, p);
}

}  // namespace weir::kernels::cuda
