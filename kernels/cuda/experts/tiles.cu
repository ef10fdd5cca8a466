// Products of many slots with plain weights. A block computes a tile of slots, which have one expert, by 128
// rows of the expert's matrix, as in products/tile_product.cu; the rows of x are gathered by the slots'
// numbers on their way to shared memory. With a gate these are 64 rows of gate and the same 64 of up, eight
// of the one and eight of the other in turn, so that a thread has both. A block sums all of K.
#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/experts/put_expert.h"
#include "kernels/cuda/products/product_tile.h"
#include "kernels/cuda/products/shared_tile.h"

namespace weir::kernels::cuda {
namespace {

constexpr int threads = tile_threads;

// Where a thread copies from: the same unit of several rows of x and of the weights. Slots behind the last
// one of the tile repeat it.
template <class T>
struct sources {
  static constexpr int x_rows = (T::m + T::pass - 1) / T::pass, w_rows = T::n / T::pass;
  const element *x[x_rows], *w[w_rows];
  int row, unit;

  __device__ __forceinline__ sources(const expert_args& a, const expert_tile& t)
      : row(static_cast<int>(threadIdx.x) / T::units), unit(static_cast<int>(threadIdx.x) % T::units) {
    const auto* matrix = reinterpret_cast<const element*>(a.matrix_of(t.expert));
#pragma unroll
    for (int i = 0; i < x_rows; ++i)
      x[i] = a.row_of(__ldcg(a.order + t.first + min(row + i * T::pass, t.count - 1))) + unit * 8;
#pragma unroll
    for (int i = 0; i < w_rows; ++i) {
      const auto r = static_cast<std::uint32_t>(row + i * T::pass);
      w[i] = matrix + std::size_t{tile_row(a, blockIdx.y * (T::n / 16) + r / 16, r % 16)} * a.k + unit * 8;
    }
  }

  // Begins to copy T::k columns from `column` on to a stage.
  __device__ __forceinline__ void copy(std::uint32_t stage, std::uint32_t column, std::uint32_t k) const {
    const bool there = column + unit * 8 < k;
    const std::size_t at = there ? column : 0;
#pragma unroll
    for (int i = 0; i < x_rows; ++i)
      if (T::m % T::pass == 0 || row + i * T::pass < T::m)
        copy_or_zeros(product_place<T>(stage, row + i * T::pass, unit), x[i] + at, there);
#pragma unroll
    for (int i = 0; i < w_rows; ++i)
      copy_or_zeros(product_place<T>(stage + T::m * T::k * 2, row + i * T::pass, unit), w[i] + at, there);
  }
};

// Writes the block's sums.
template <dtype type, class T>
__device__ __forceinline__ void put_tile(const expert_args& a, const expert_tile& t,
                                         const float (&sums)[T::quads][4]) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const bool gated = a.kind == expert_out::gated;
  // The first of the warp's rows of the weights in the tile, and the first output that they make.
  const int first = warp / T::across * (T::n / T::along);
  const auto column = blockIdx.y * (gated ? T::n / 2 : T::n) +
                      static_cast<std::uint32_t>((gated ? first / 2 : first) + lane % 4 * 2);
#pragma unroll
  for (int i = 0; i < T::high; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp % T::across * (T::m / T::across) + i * 16 + half * 8 + lane / 4;
      if (row >= t.count) continue;
      const std::int32_t slot = __ldcg(a.order + t.first + row);
#pragma unroll
      for (int j = 0; j < T::wide; j += 2) {
        const float(&s)[4] = sums[i * T::wide + j], (&next)[4] = sums[i * T::wide + j + 1];
        const float2 v = make_float2(s[2 * half], s[2 * half + 1]),
                     u = make_float2(next[2 * half], next[2 * half + 1]);
        if (gated) {
          const std::uint32_t at = column + static_cast<std::uint32_t>(j) * 4;
          if (at < a.n / 2) put_two<type>(a, t.expert, slot, at, v, u);
        } else {
          const std::uint32_t at = column + static_cast<std::uint32_t>(j) * 8;
          if (at < a.n) put_two<type>(a, t.expert, slot, at, v, v);
          if (at + 8 < a.n) put_two<type>(a, t.expert, slot, at + 8, u, u);
        }
      }
    }
}

template <dtype type, class T>
__global__ void __launch_bounds__(threads, 2) tile_kernel(const expert_args a) {
  extern __shared__ __align__(128) unsigned char shared[];
  let_next_start();
  wait_for_previous();
  const expert_tile t = tile_of(a);
  if (t.count == 0) return;
  const std::uint32_t base = shared_address(shared);
  const int stages = static_cast<int>((a.k + T::k - 1) / T::k);
  const sources<T> from(a, t);
  int asked = 0, ask_stage = 0;
  const auto ask = [&] {
    if (asked < stages)
      from.copy(base + static_cast<std::uint32_t>(ask_stage * T::stage),
                static_cast<std::uint32_t>(asked * T::k), a.k);
    ++asked;
    if (++ask_stage == T::stages) ask_stage = 0;
    copies_end_group();
  };
#pragma unroll
  for (int i = 0; i < T::stages - 1; ++i) ask();
  float sums[T::quads][4] = {};
  int stage = 0;
  for (int at = 0; at < stages; ++at) {
    copies_wait<T::stages - 2>();
    __syncthreads();  // all see the stage, and all have read the one before it
    ask();
    multiply_stage<type, T>(base + static_cast<std::uint32_t>(stage * T::stage), sums);
    if (++stage == T::stages) stage = 0;
  }
  put_tile<type, T>(a, t, sums);
}

template <dtype type, class T>
void start(device& d, const expert_args& a, const expert_division& by) {
  static_assert(T::bytes <= general_shared);
  const auto kernel = tile_kernel<type, T>;
  allow_shared(d, kernel, T::bytes);
  launch(d, kernel, dim3(by.tiles, (a.n + T::n - 1) / T::n), threads, T::bytes, a);
}

template <dtype type>
void start(device& d, const expert_args& a, const expert_division& by) {
  if (by.tile_slots == small_tile_slots) return start<type, product_tile<small_tile_slots>>(d, a, by);
  if (by.tile_slots == tile_slots) return start<type, product_tile<tile_slots>>(d, a, by);
  start<type, product_tile<large_tile_slots>>(d, a, by);
}

}  // namespace

void expert_tiles(device& d, dtype type, const expert_args& a, const expert_division& by) {
  if (type == dtype::f16) return start<dtype::f16>(d, a, by);
  start<dtype::bf16>(d, a, by);
}

}  // namespace weir::kernels::cuda
