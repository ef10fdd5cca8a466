// All matrix products of a model, layer by layer, beside what this machine reads and multiplies in the same
// run.
//
//   bench_kernels_linear [THREADS] [ROWS...]
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels/cpu/backend.h"
#include "kernels/cpu/packing.h"

using namespace weir::kernels;

namespace {

struct shape {
  std::uint32_t n, k;
};

std::vector<shape> tiny_110m() {
  std::vector<shape> all;
  for (int layer = 0; layer < 12; ++layer)
    all.insert(all.end(), {{2304, 768}, {768, 768}, {4096, 768}, {768, 2048}});
  all.push_back({32000, 768});
  return all;
}

struct stack {
  std::vector<matrix> weights;
  std::uint64_t bytes = 0, flops = 0;  // flops of one row
};

stack lay_out(dtype type) {
  stack s;
  for (const shape& each : tiny_110m()) {
    s.bytes += (packed_bytes(type, each.n, each.k) + 255) / 256 * 256;
    s.flops += 2ull * each.n * each.k;
  }
  auto* at = static_cast<std::byte*>(
      ::mmap(nullptr, s.bytes + (4u << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  at = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(at) + (2u << 20) - 1) &
                                    ~((2ull << 20) - 1));
  ::madvise(at, s.bytes, MADV_HUGEPAGE);
  for (const shape& each : tiny_110m()) {
    const std::uint64_t bytes = (packed_bytes(type, each.n, each.k) + 255) / 256 * 256;
    for (std::uint64_t i = 0; i < bytes / 2; ++i)
      reinterpret_cast<std::uint16_t*>(at)[i] = static_cast<std::uint16_t>(0x3c00 | (i * 40503 >> 4 & 0xff));
    s.weights.push_back({at, type, each.n, each.k, layout::packed});
    at += bytes;
  }
  return s;
}

template <class F>
double best_seconds(int rounds, const F& f) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main(int count, char** args) {
  const unsigned threads = count > 1 ? static_cast<unsigned>(std::atoi(args[1])) : 2;
  std::vector<std::uint32_t> rows;
  for (int i = 2; i < count; ++i) rows.push_back(static_cast<std::uint32_t>(std::atoi(args[i])));
  if (rows.empty()) rows = {1, 8, 32, 512};
  const auto cpu = cpu_backend(threads);
  std::printf("%s, %u threads\n", std::string(cpu->name).c_str(), threads);
  for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16}) {
    const stack model = lay_out(type);
    const void* first = model.weights.front().data;
    const auto limit = [&] { return best_seconds(3, [&] { cpu->do_read(cpu->self, first, model.bytes); }); };
    for (const std::uint32_t m : rows) {
      std::vector<float> x(m * 2048, 0.25f), out(m * 32000);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += static_cast<float>(i % 97) / 97;
      double s = 1e9, read = 1e9, peak = 0;  // alternately, so that both see the same machine
      for (int round = 0; round < (m > 64 ? 3 : 10); ++round) {
        read = std::min(read, limit());
        s = std::min(s, best_seconds(m > 64 ? 1 : 3, [&] {
          for (const matrix& w : model.weights) {
            // a prompt has one row of logits
            const std::uint32_t n = &w == &model.weights.back() && m > 64 ? 1 : m;
            cpu->run(linear{w, nullptr, x.data(), out.data(), n});
          }
        }));
        if (m > 8) peak = std::max(peak, cpu->peak_flops(cpu->self, type));
      }
      const double bytes = static_cast<double>(model.bytes);
      const double flops = static_cast<double>(model.flops) * m - (m > 64 ? (m - 1) * 2.0 * 32000 * 768 : 0);
      std::printf("%-5s %4u rows %9.0f us %8.0f rows/s", name(type), m, s * 1e6, m / s);
      if (m <= 64)
        std::printf("  %6.1f GB/s of %6.1f: %3.0f %%", bytes / s * 1e-9, bytes / read * 1e-9, 100 * read / s);
      if (m > 8)
        std::printf("  %6.3f TFLOP/s of %6.3f: %3.0f %%", flops / s * 1e-12, peak * 1e-12,
                    100 * flops / s / peak);
      std::printf("\n");
    }
  }
}
