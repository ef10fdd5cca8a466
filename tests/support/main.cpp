// Catch's main. A test that fails says which seeds it drew (tests/support/seed.h).
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>

namespace {

struct seed_teller : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseEnded(const Catch::TestCaseStats& s) override {
    const char* seed = std::getenv("WEIR_TEST_SEED");
    if (s.totals.assertions.allOk() || !seed) return;
    std::cout << "random seeds were drawn from WEIR_TEST_SEED=" << seed << std::endl;
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(seed_teller)
