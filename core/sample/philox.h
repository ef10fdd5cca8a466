// philox.h — Philox4x32-10: random numbers that are a pure function of a key and a counter.
//
// A draw needs no state but its own coordinates, so that a token depends on its job's seed and its position
// alone, whatever ran beside it and however often it is drawn again. Salmon, Moraes, Dror, Shaw: «Parallel
// random numbers: as easy as 1, 2, 3», SC 2011; tests hold it to the authors' known answers (Random123).
#pragma once

#include <array>
#include <cstdint>

namespace weir::core {

using philox_counter = std::array<std::uint32_t, 4>;
using philox_key = std::array<std::uint32_t, 2>;

constexpr philox_counter philox(philox_counter c, philox_key k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    k = {k[0] + 0x9E3779B9, k[1] + 0xBB67AE85};
  }
  return c;
}

// Where a random number is used: `position` of the token in the sequence, and `choice` among a request's
// parallel choices. A token takes one number, `draw` 0, and XTC's coin is `draw` 1. `attempt` counts the
// tokens that were refused there before (sampler::go_back()).
struct draw_site {
  std::uint32_t position = 0, choice = 0, attempt = 0, draw = 0;
};

// In [0, 1), 53 bits.
constexpr double uniform(std::uint64_t seed, draw_site at) {
  const auto r = philox({at.position, at.choice, at.attempt, at.draw},
                        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{r[0]} << 32 | r[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace weir::core
