// random.h — numbers that a seed decides. Every choice of a round is drawn here, so a seed is a round.
//
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace weir::stranger {

class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}

  // splitmix64: any seed is as good as any other, 0 too.
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(next() % n); }
  std::size_t between(std::size_t low, std::size_t high) { return low + below(high - low + 1); }
  bool chance(unsigned percent) { return next() % 100 < percent; }
  char byte() { return static_cast<char>(next()); }

  template <class Items>
  const auto& pick(const Items& items) {
    return items[below(std::size(items))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace weir::stranger
