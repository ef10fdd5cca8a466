#include "kernels/cuda/products/wgmma_division.h"

#include <algorithm>

namespace weir::kernels::cuda {
namespace {

std::uint32_t parts_of(std::uint32_t all, std::uint32_t each) { return (all + each - 1) / each; }

}  // namespace

// A block reads weights and, more quickly, x; what it adds to the output by atomics takes long. The factors
// are fitted to docs/measurements/kernels.md. Tensor cores cut sums off, so a long K is added in two parts at
// least.
wgmma_division divide_wgmma(std::uint32_t multiprocessors, product_out kind, std::uint32_t n, std::uint32_t k,
                            std::uint32_t m) {
  wgmma_division best{m <= 64 ? 1u : 2u, m <= 128 ? 1u : 2u, 0, 0, 0, 0, ~std::uint64_t{0}};
  best.x_tiles = parts_of(m, best.x_rows());
  const bool adds = kind == product_out::add_f32;
  const std::uint32_t clusters = multiprocessors / best.blocks, chunks = parts_of(k, wgmma_chunk),
                      least = adds ? std::min(chunks, 2u) : 1, most = adds ? std::min(chunks, 8u) : 1,
                      x_rows = best.x_groups * 64, x_time = best.blocks == 1 ? x_rows / 8 : x_rows / 2;
  for (const std::uint32_t w_rows : wgmma_widths(kind))
    for (std::uint32_t adders = least; w_rows && adders <= most; ++adders) {
      const std::uint32_t rounds = parts_of(parts_of(n, w_rows) * best.x_tiles * adders, clusters);
      const std::uint64_t each =
          (w_rows + x_time) * (std::uint64_t{k} / adders) + (adds ? 8 * std::uint64_t{w_rows} * x_rows : 0);
      if (rounds * each >= best.time) continue;
      best.w_rows = w_rows;
      best.adders = adders;
      best.rounds = rounds;
      best.time = rounds * each;
    }
  return best;
}

}  // namespace weir::kernels::cuda
