// shrink.h — finds a short beginning of a failing run that still fails.
#pragma once

#include <cstddef>
#include <functional>

namespace weir::tests {

// Finds by halving a length at which the beginning of a run fails while the beginning that is shorter by one
// passes. Where there are several such lengths, any of them may be returned. REQUIRES: a beginning of length
// `count` fails, and one of length 0 passes
inline std::size_t shrink(std::size_t count, const std::function<bool(std::size_t)>& fails) {
  std::size_t passes = 0;
  while (count - passes > 1) {
    const std::size_t half = passes + (count - passes) / 2;
    (fails(half) ? count : passes) = half;
  }
  return count;
}

}  // namespace weir::tests
