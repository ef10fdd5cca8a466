// shrink.h — how little of a failing run still fails.
#pragma once

#include <cstddef>
#include <functional>

namespace weir::tests {

// The length of a beginning that fails while the one shorter by one does not, found by halving. REQUIRES: all
// of `count` fails, and nothing at all does not. Where failing comes and goes with the length, any such place
// is as good.
inline std::size_t shrink(std::size_t count, const std::function<bool(std::size_t)>& fails) {
  std::size_t passes = 0;
  while (count - passes > 1) {
    const std::size_t half = passes + (count - passes) / 2;
    (fails(half) ? count : passes) = half;
  }
  return count;
}

}  // namespace weir::tests
