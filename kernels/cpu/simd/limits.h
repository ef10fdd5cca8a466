// limits.h — loops that only read, or only multiply.
#pragma once

#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

// Reads in eight streams at once: the processor's own prefetcher follows each of them, and one stream does
// not keep the memory busy.
void read(const void* at, std::size_t bytes) {
  constexpr std::size_t streams = 8, line = 64, length = 48u << 10;
  const auto* from = static_cast<const std::byte*>(at);
  uvec seen[streams] = {};
  std::size_t done = 0;
  while (bytes - done >= streams * line) {
    const std::size_t part = (bytes - done) / streams / line * line, n = part < length ? part : length;
    for (std::size_t i = 0; i < n; i += line)
      WEIR_UNROLL_BY(8)
      for (std::size_t s = 0; s < streams; ++s)
        WEIR_UNROLL_BY(4)
        for (std::size_t v = 0; v < line / sizeof(uvec); ++v)
          seen[s] ^= load_as<uvec>(from + done + s * n + i + v * sizeof(uvec));
    done += streams * n;
  }
  for (; done < bytes; ++done) seen[0][0] ^= static_cast<std::uint32_t>(from[done]);
  for (std::size_t s = 1; s < streams; ++s) seen[0] ^= seen[s];
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < lanes; ++i) all ^= seen[0][i];
  asm volatile("" : : "r"(all));  // keeps the compiler from leaving the reads out
}

// Multiplies and adds in registers alone; returns the flops done.
double spin(std::size_t rounds) {
  constexpr std::size_t chains = 12;  // enough to hide the latency of a multiply-add
  const vec factor = broadcast(0.5f), term = broadcast(1.0f);
  vec sums[chains] = {};
  for (std::size_t i = 0; i < rounds; ++i)
    WEIR_UNROLL_BY(12)
    for (std::size_t c = 0; c < chains; ++c) {
      sums[c] = multiply_add(sums[c], factor, term);
#if defined(__AVX512F__)
      asm volatile("" : "+v"(sums[c]));  // keeps the compiler from leaving it out
#elif defined(__x86_64__)
      asm volatile("" : "+x"(sums[c]));
#elif defined(__aarch64__)
      asm volatile("" : "+w"(sums[c]));
#endif
    }
  return 2.0 * static_cast<double>(rounds * chains * lanes);
}

}  // namespace
}  // namespace weir::kernels
