// seed.h — where random tests get their seeds.
//
// WEIR_TEST_SEED, any text in the environment, decides all of them: `./run test` sets it to the commit's
// hash, and `./run test --long` to one that is new. Without it a test draws the seeds that its source names.
// What a seed has found stays in the tests as a fixed one.
//
// Thread safety: reads the environment alone.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace weir::tests {

// The run's n-th seed: as good as any other, and the same one wherever WEIR_TEST_SEED is the same.
inline std::uint64_t drawn_seed(std::uint64_t n) {
  const char* text = std::getenv("WEIR_TEST_SEED");
  if (!text || !*text) return n;
  std::uint64_t z = 0xCBF29CE484222325u;  // FNV-1a of the text, then splitmix64
  for (; *text; ++text) z = (z ^ static_cast<unsigned char>(*text)) * 0x100000001B3u;
  z += (n + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace weir::tests
