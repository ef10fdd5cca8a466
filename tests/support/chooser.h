// chooser.h — draws the settings of random models.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

namespace weir::tests {

class chooser {
 public:
  explicit chooser(std::uint64_t seed) : r_(static_cast<std::mt19937::result_type>(seed)) {}
  std::uint32_t up_to(std::uint32_t n) { return static_cast<std::uint32_t>(r_() % (n + 1)); }
  bool one_in(std::uint32_t n) { return up_to(n - 1) == 0; }
  template <class T>
  T of(std::initializer_list<T> all) {
    return all.begin()[up_to(static_cast<std::uint32_t>(all.size()) - 1)];
  }

 private:
  std::mt19937 r_;
};

}  // namespace weir::tests
