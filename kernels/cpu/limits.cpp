// The most that this machine reads and multiplies, measured with the threads of the backend. Other figures
// are given as shares of these.
#include <algorithm>
#include <chrono>

#include "kernels/cpu/backend.h"

namespace weir::kernels {

// Reads `bytes` bytes: each worker streams through one piece, as in products.
void cpu_read(void* self, const void* at, std::uint64_t bytes) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const std::uint64_t share = (bytes / cpu.workers.size() + 63) / 64 * 64;
  cpu.workers.run(cpu.workers.size(), [&](std::uint32_t item, unsigned) {
    const std::uint64_t first = std::min(bytes, item * share);
    cpu.simd.read(static_cast<const std::byte*>(at) + first, std::min(share, bytes - first));
  });
}

// The best of some short runs, because the first runs wake the unit up.
double cpu_peak_flops(void* self, dtype weights) {
  using clock = std::chrono::steady_clock;
  auto& cpu = *static_cast<cpu_state*>(self);
  const product_path& path = cpu.path_of(weights);
  constexpr std::size_t runs = 10, rounds = 100'000;
  double best = 0;
  for (std::size_t run = 0; run < runs; ++run) {
    std::atomic<double> flops = 0;
    const auto start = clock::now();
    cpu.workers.run(cpu.workers.size(), [&](std::uint32_t, unsigned) { flops += path.spin(rounds); });
    best = std::max(best, flops / std::chrono::duration<double>(clock::now() - start).count());
  }
  return best;
}

}  // namespace weir::kernels
