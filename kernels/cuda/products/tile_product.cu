// Products of any number of rows by our own kernel, for devices and machines without cuBLASLt.
//
// A block computes a tile of 64 or 128 rows of x by 128 rows of the weights. Pieces of both, 64 columns of K,
// pass through a ring in shared memory that asynchronous copies fill; eight warps multiply them by mma.sync,
// two along x and four along the weights. Where there are fewer tiles than blocks that run at once, several
// blocks share the K of a tile: each stores its sums, and the block that comes last adds them in order. A
// deterministic device does not share, and all its tiles have 64 rows: a row is then summed in one order,
// whatever is beside it.
#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/products/product_tile.h"
#include "kernels/cuda/products/products.h"
#include "kernels/cuda/products/shared_tile.h"

namespace weir::kernels::cuda {
namespace {

constexpr int threads = tile_threads;

using small_tile = product_tile<64>;
using large_tile = product_tile<128>;

// x is [m, k], w is [n, k].
struct tile_args {
  const element* w;
  const element* x;
  void* out;
  float4* parts;                  // [tiles, gridDim.z, quads, threads]: sums of the blocks that share a tile
  unsigned* arrived;              // [tiles]: how many of them are done; zero between kernels
  std::uint32_t n, k, m, stride;  // stride: of out
};

// Where a thread copies from: the same unit of several rows of x and of the weights. Rows behind the last one
// repeat it.
template <class T>
struct sources {
  const element *x[T::m / T::pass], *w[T::n / T::pass];
  int row, unit;

  __device__ __forceinline__ explicit sources(const tile_args& a)
      : row(static_cast<int>(threadIdx.x) / T::units), unit(static_cast<int>(threadIdx.x) % T::units) {
#pragma unroll
    for (int i = 0; i < T::m / T::pass; ++i)
      x[i] = a.x + std::size_t{min(blockIdx.x * T::m + row + i * T::pass, a.m - 1)} * a.k + unit * 8;
#pragma unroll
    for (int i = 0; i < T::n / T::pass; ++i)
      w[i] = a.w + std::size_t{min(blockIdx.y * T::n + row + i * T::pass, a.n - 1)} * a.k + unit * 8;
  }

  // Begins to copy T::k columns from `column` on to a stage.
  __device__ __forceinline__ void copy(std::uint32_t stage, std::uint32_t column, std::uint32_t k) const {
    const bool there = column + unit * 8 < k;
    const std::size_t at = there ? column : 0;
#pragma unroll
    for (int i = 0; i < T::m / T::pass; ++i)
      copy_or_zeros(product_place<T>(stage, row + i * T::pass, unit), x[i] + at, there);
#pragma unroll
    for (int i = 0; i < T::n / T::pass; ++i)
      copy_or_zeros(product_place<T>(stage + T::m * T::k * 2, row + i * T::pass, unit), w[i] + at, there);
  }
};

// Writes outputs `column` and `column` + 1 of row `row` of x, or adds to them.
template <dtype type, product_out kind>
__device__ __forceinline__ void put_two(const tile_args& a, std::uint32_t row, std::uint32_t column, float v,
                                        float next) {
  if (row >= a.m || column >= a.n) return;
  const std::size_t at = std::size_t{row} * a.stride + column;
  const bool both = column + 1 < a.n;
  if constexpr (kind == product_out::element) {
    auto* out = static_cast<element*>(a.out) + at;
    if (a.n % 2 == 0 && a.stride % 2 == 0) {
      *reinterpret_cast<std::uint32_t*>(out) = pair_of<type>(v, next);
    } else {
      out[0] = element_of<type>(v);
      if (both) out[1] = element_of<type>(next);
    }
  } else {
    auto* out = static_cast<float*>(a.out) + at;
    if constexpr (kind == product_out::add_f32) {
      v += out[0];
      if (both) next += out[1];
    }
    out[0] = v;
    if (both) out[1] = next;
  }
}

template <dtype type, product_out kind, class T>
__global__ void __launch_bounds__(threads, 2) tile_kernel(const tile_args a) {
  extern __shared__ __align__(128) unsigned char shared[];
  const std::uint32_t base = shared_address(shared), all = (a.k + T::k - 1) / T::k;
  const int begin = static_cast<int>(all * blockIdx.z / gridDim.z),
            end = static_cast<int>(all * (blockIdx.z + 1) / gridDim.z);
  let_next_start();
  wait_for_previous();
  const sources<T> from(a);
  int asked = begin, ask_stage = 0;
  const auto ask = [&] {
    if (asked < end) from.copy(base + ask_stage * T::stage, asked * T::k, a.k);
    ++asked;
    if (++ask_stage == T::stages) ask_stage = 0;
    copies_end_group();
  };
#pragma unroll
  for (int i = 0; i < T::stages - 1; ++i) ask();
  float sums[T::quads][4] = {};
  int stage = 0;
  for (int at = begin; at < end; ++at) {
    copies_wait<T::stages - 2>();
    __syncthreads();  // all see the stage, and all have read the one before it
    ask();
    multiply_stage<type, T>(base + stage * T::stage, sums);
    if (++stage == T::stages) stage = 0;
  }
  if (gridDim.z > 1 && !join_tile<T::quads, threads>(a.parts, a.arrived, sums)) return;
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t row = blockIdx.x * T::m + warp % T::across * (T::m / T::across) + lane / 4,
                      column = blockIdx.y * T::n + warp / T::across * (T::n / T::along) + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < T::high; ++i)
#pragma unroll
    for (int j = 0; j < T::wide; ++j) {
      const float(&s)[4] = sums[i * T::wide + j];
      put_two<type, kind>(a, row + i * 16, column + j * 8, s[0], s[1]);
      put_two<type, kind>(a, row + i * 16 + 8, column + j * 8, s[2], s[3]);
    }
}

// How many blocks share the K of a tile: as many as can all run at once, each with at least four stages of
// work.
std::uint32_t parts_for(const device& d, std::uint32_t tiles, std::uint32_t stages) {
  if (d.deterministic) return 1;
  const auto room = static_cast<std::uint32_t>(d.multiprocessors);
  return std::clamp(room / tiles, 1u, std::clamp(stages / 4, 1u, 16u));
}

template <dtype type, product_out kind, class T>
void start(device& d, const product& p) {
  static_assert(T::bytes <= general_shared);
  const std::uint32_t high = (p.m + T::m - 1) / T::m, wide = (p.n + T::n - 1) / T::n;
  const tile_args a{static_cast<const element*>(p.w),
                    static_cast<const element*>(p.x),
                    p.out,
                    static_cast<float4*>(d.workspace),
                    d.arrived,
                    p.n,
                    p.k,
                    p.m,
                    p.stride()};
  const auto kernel = tile_kernel<type, kind, T>;
  allow_shared(d, kernel, T::bytes);
  launch(d, kernel, dim3(high, wide, parts_for(d, high * wide, (p.k + T::k - 1) / T::k)), threads, T::bytes,
         a);
}

template <dtype type, product_out kind>
void start(device& d, const product& p) {
  if (p.m <= 64 || d.deterministic) return start<type, kind, small_tile>(d, p);
  start<type, kind, large_tile>(d, p);
}

}  // namespace

void tile_product(device& d, const product& p) {
  if (d.failed() || p.m == 0) return;
  with_constants(p, [&](auto type, auto kind) {
    // choose_product() excludes it: decoders then ask for gate and up as they are.
    if constexpr (kind != product_out::gated) start<type, kind>(d, p);
  });
}

}  // namespace weir::kernels::cuda
