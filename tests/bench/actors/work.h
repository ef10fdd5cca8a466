// work.h — what the published programs compute besides sending messages: the same for every peer.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace bench {

constexpr std::uint64_t factor_1 = 86'028'157, factor_2 = 329'545'133;

// By trial division: about half a second for factor_1 * factor_2.
inline std::vector<std::uint64_t> factorise(std::uint64_t n) {
  std::vector<std::uint64_t> found;
  for (std::uint64_t d = 2; d < n; d += d == 2 ? 1 : 2) {
    while (n > d && n % d == 0) {
      found.push_back(d);
      n /= d;
    }
  }
  found.push_back(n);
  return found;
}

// Savina's generator: 16 bits, the same numbers in every language.
class small_random {
 public:
  explicit small_random(std::uint64_t seed) : value_(seed) {}
  std::uint64_t next() { return value_ = (value_ * 1309 + 13849) & 65535; }
  double next_double() { return 1.0 / static_cast<double>(next() + 1); }

 private:
  std::uint64_t value_;
};

// What it costs to produce or to consume one item of bndbuffer.
inline double process_item(double item, std::uint64_t cost) {
  small_random random(cost);
  for (std::uint64_t i = 0; i < cost * 100; ++i) item += std::log(random.next_double() + 0.01);
  return item;
}

// What fjthrput does with a message; never 0 or less.
inline double compute(double theta) {
  const double s = std::sin(theta);
  return s * s;
}

}  // namespace bench
