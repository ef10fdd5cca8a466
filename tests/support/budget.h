// budget.h — how many rounds a random test goes through. `./run test --long` asks for ten times as many.
#pragma once

#include <cstdlib>

namespace weir::tests {

// `usual` times WEIR_TEST_BUDGET, a whole number from the environment; without one, `usual`.
inline unsigned rounds(unsigned usual) {
  const char* named = std::getenv("WEIR_TEST_BUDGET");
  const int times = named ? std::atoi(named) : 1;
  return times > 0 ? usual * static_cast<unsigned>(times) : usual;
}

}  // namespace weir::tests
