// measure.h — how long an operation takes, and how near that is to the machine's own limits in the same run.
//
// Thread safety: none.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "kernels/ops.h"
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

// Makes as many calls as fit into `budget` seconds; call(i) is the i-th. Returns the time in seconds below
// which one call in ten stays: what a call takes where nobody else uses the cores.
template <class F>
double seconds(const F& call, double budget = 0.25) {
  using clock = std::chrono::steady_clock;
  std::vector<double> took;
  const auto begin = clock::now();
  for (std::size_t i = 0; i < 3 || std::chrono::duration<double>(clock::now() - begin).count() < budget;
       ++i) {
    const auto start = clock::now();
    call(i);
    took.push_back(std::chrono::duration<double>(clock::now() - start).count());
  }
  std::nth_element(took.begin(), took.begin() + std::ptrdiff_t(took.size() / 10), took.end());
  return took[took.size() / 10];
}

// What this machine can do with the threads of a backend.
struct limits {
  double bytes = 0;  // read from memory, a second
  double flops = 0;  // f32 fused multiply-adds, each counted twice, a second
};

inline limits measure(const kernels::backend& b) {
  const floats memory(std::size_t{1} << 27);
  const double bytes = double(memory.size() * sizeof(float));
  return {
      bytes / seconds([&](std::size_t) { b.do_read(b.self, memory.data(), memory.size() * sizeof(float)); }),
      b.peak_flops(b.self, kernels::dtype::f32)};
}

inline void print_header(const limits& l, unsigned threads) {
  std::printf("%u threads: memory read at %.1f GB/s, f32 multiplied and added at %.0f GFLOP/s\n\n", threads,
              l.bytes * 1e-9, l.flops * 1e-9);
  std::printf("%-44s %10s %8s %6s %8s %6s\n", "", "us", "GB/s", "", "GFLOP/s", "");
}

inline void print_line(const char* what, double took, const kernels::traffic& moved, const limits& l) {
  const double bytes = double(moved.bytes) / took, flops = double(moved.flops) / took;
  std::printf("%-44s %10.2f %8.1f %5.0f%% %8.1f %5.0f%%\n", what, took * 1e6, bytes * 1e-9,
              100 * bytes / l.bytes, flops * 1e-9, l.flops > 0 ? 100 * flops / l.flops : 0.0);
}

}  // namespace weir::bench
