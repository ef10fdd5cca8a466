// measure.h — how long an operation takes, and how near that is to the machine's own limits in the same run.
//
// Thread safety: none.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/team.h"
#include "kernels/traffic.h"

namespace weir::bench {

// Zeroed floats on huge pages where the system has them, as models hold theirs.
class floats {
 public:
  explicit floats(std::size_t count) : count_(count), bytes_((count * sizeof(float) | 0x1fffff) + 1) {
    data_ = static_cast<float*>(std::aligned_alloc(1 << 21, bytes_));
    if (!data_) std::abort();
    ::madvise(data_, bytes_, MADV_HUGEPAGE);
    std::fill_n(data_, count, 0.0f);
  }
  ~floats() { std::free(data_); }
  floats(const floats&) = delete;
  floats& operator=(const floats&) = delete;

  void randomise() {
    std::minstd_rand random(1);
    for (std::size_t i = 0; i < count_; ++i) data_[i] = static_cast<float>(random() % 2001) * 1e-3f - 1.0f;
  }
  float* data() const noexcept { return data_; }
  float& operator[](std::size_t i) const noexcept { return data_[i]; }
  std::size_t size() const noexcept { return count_; }

 private:
  std::size_t count_, bytes_;
  float* data_;
};

// Of as many calls as fit into `budget` seconds the time that one in ten stays below, in seconds: what a call takes
// where nobody else wants the cores. call(i) is the i-th.
template <class F>
double seconds(const F& call, double budget = 0.25) {
  using clock = std::chrono::steady_clock;
  std::vector<double> took;
  const auto begin = clock::now();
  for (std::size_t i = 0; i < 3 || std::chrono::duration<double>(clock::now() - begin).count() < budget; ++i) {
    const auto start = clock::now();
    call(i);
    took.push_back(std::chrono::duration<double>(clock::now() - start).count());
  }
  std::nth_element(took.begin(), took.begin() + std::ptrdiff_t(took.size() / 10), took.end());
  return took[took.size() / 10];
}

// What this machine can do with so many threads.
struct limits {
  double bytes = 0;  // read from memory, a second
  double flops = 0;  // f32 fused multiply-adds, each counted twice, a second
};

#if defined(__x86_64__)
// Eight sums of 16 lanes, `rounds` times; the flops of one round are 256.
__attribute__((target("avx512f"), noinline)) inline float multiply_add(std::size_t rounds) {
  __m512 sums[8], x = _mm512_set1_ps(0.999f);
  for (auto& s : sums) s = x;
  for (std::size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 8
    for (auto& s : sums) s = _mm512_fmadd_ps(s, x, x);
    asm volatile("" : "+v"(x));
  }
  for (int i = 1; i < 8; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}
#endif

inline limits measure(kernels::team& team) {
  limits found;
  constexpr std::size_t pieces = 512, piece = 1 << 18;
  floats memory(pieces * piece);
  std::vector<double> sums(pieces);
  const double read = seconds([&](std::size_t) {
    team.run(pieces, [&](std::uint32_t item, unsigned) {
      std::array<std::uint32_t, 64> part{};
      const auto* from = reinterpret_cast<const std::uint32_t*>(memory.data() + item * piece);
      for (std::size_t i = 0; i < piece; i += 64)
        for (std::size_t j = 0; j < 64; ++j) part[j] |= from[i + j];
      sums[item] = part[0];
      for (const auto x : part) sums[item] += x;
    });
  });
  found.bytes = double(pieces * piece * sizeof(float)) / read;
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx512f")) return found;
  constexpr std::size_t rounds = 1 << 18;
  const double multiplied = seconds([&](std::size_t) {
    team.run(team.size(), [&](std::uint32_t item, unsigned) { sums[item] = multiply_add(rounds); });
  });
  found.flops = double(team.size()) * rounds * 256 / multiplied;
#endif
  return found;
}

inline void print_header(const limits& l, unsigned threads) {
  std::printf("%u threads: memory read at %.1f GB/s, f32 multiplied and added at %.0f GFLOP/s\n\n", threads, l.bytes * 1e-9,
              l.flops * 1e-9);
  std::printf("%-44s %10s %8s %6s %8s %6s\n", "", "us", "GB/s", "", "GFLOP/s", "");
}

inline void print_line(const char* what, double took, const kernels::traffic& moved, const limits& l) {
  const double bytes = double(moved.bytes) / took, flops = double(moved.flops) / took;
  std::printf("%-44s %10.2f %8.1f %5.0f%% %8.1f %5.0f%%\n", what, took * 1e6, bytes * 1e-9, 100 * bytes / l.bytes,
              flops * 1e-9, l.flops > 0 ? 100 * flops / l.flops : 0.0);
}

}  // namespace weir::bench
