// process_seed.h — the seed of this process's hashes of clients' texts. It is drawn at the first call, so
// that nobody can choose texts whose hashes collide. Any thread.
#pragma once

#include <cstdint>
#include <random>

namespace weir::core::grammar {

inline std::uint64_t process_seed() {
  static const std::uint64_t seed = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return seed;
}

}  // namespace weir::core::grammar
