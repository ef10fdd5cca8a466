// product_tile.h — a tile of a product of elements in shared memory, and how warps multiply it by mma.sync
// (tile_product.cu, and experts/tiles.cu).
#pragma once

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/mma.h"

namespace weir::kernels::cuda {

constexpr int tile_threads = 256;

// A tile of m rows of x by n rows of the weights, k columns at a time. `across` warps divide m and `along`
// warps n.
template <int tile_m>
struct product_tile {
  static constexpr int m = tile_m, n = 128, k = 64;
  static constexpr int across = m < 64 ? 1 : 2, along = tile_threads / 32 / across;
  static constexpr int stage = (m + n) * k * 2;  // bytes
  static constexpr int stages = static_cast<int>(general_shared) / stage;
  static constexpr std::size_t bytes = stages * stage;
  static constexpr int units = k / 8;                // of 16 bytes in a row
  static constexpr int pass = tile_threads / units;  // rows that the threads copy at once
  static constexpr int high = m / across / 16,
                       wide = n / along / 8;  // of a warp's sums: tiles of 16 rows of x by 8 outputs
  static constexpr int quads = high * wide;   // of a thread's sums
};

// The address of unit `unit` (16 bytes) of row `row`. Units are permuted by the row, so that eight rows that
// are read at once lie in different banks.
template <class T>
__device__ __forceinline__ std::uint32_t product_place(std::uint32_t rows, int row, int unit) {
  static_assert(T::units == 8);
  return rows + static_cast<std::uint32_t>((row * T::units + (unit ^ (row & 7))) * 16);
}

// Adds the products of a stage to the warp's sums.
template <dtype type, class T>
__device__ __forceinline__ void multiply_stage(std::uint32_t stage, float (&sums)[T::quads][4]) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int x_row = warp % T::across * (T::m / T::across) + lane % 16;
  const int w_row = warp / T::across * (T::n / T::along) + (lane >> 4) * 8 + lane % 8;
  const std::uint32_t weights = stage + T::m * T::k * 2;
#pragma unroll
  for (int step = 0; step < T::k / 16; ++step) {
    std::uint32_t x[T::high][4], w[T::wide / 2][4];
#pragma unroll
    for (int i = 0; i < T::high; ++i)
      load_matrices(x[i], product_place<T>(stage, x_row + i * 16, step * 2 + (lane >> 4)));
#pragma unroll
    for (int j = 0; j < T::wide / 2; ++j)
      load_matrices(w[j], product_place<T>(weights, w_row + j * 16, step * 2 + (lane >> 3) % 2));
#pragma unroll
    for (int i = 0; i < T::high; ++i)
#pragma unroll
      for (int j = 0; j < T::wide; ++j)
        mma<type>(sums[i * T::wide + j], x[i][0], x[i][1], x[i][2], x[i][3], w[j / 2][j % 2 * 2],
                  w[j / 2][j % 2 * 2 + 1]);
  }
}

}  // namespace weir::kernels::cuda
