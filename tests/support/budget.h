// budget.h — how many rounds a random test goes through.
//
// WEIR_TEST_BUDGET, a whole number in the environment, multiplies the rounds: `./run test --long` asks for
// 10. Without it a build with a sanitizer, in which a round takes some five times as long, goes through an
// eighth of them. Every commit has seeds of its own (seed.h): few rounds a run become many over the commits.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace weir::tests {

// `usual` within the budget, but at least 1. What a test counts over its rounds scales alike.
inline unsigned rounds(unsigned usual) {
  const char* named = std::getenv("WEIR_TEST_BUDGET");
  const int times = named ? std::atoi(named) : 0;
  if (times > 0) return usual * static_cast<unsigned>(times);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::max(1u, usual / 8);
#else
  return usual;
#endif
}

}  // namespace weir::tests
