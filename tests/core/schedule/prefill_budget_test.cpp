#include "core/schedule/prefill_budget.h"

#include <catch2/catch.hpp>

using namespace weir::core;
using namespace std::chrono_literals;

TEST_CASE("without a target the rows alone bound a slice") {
  prefill_budget b({.rows = 300});
  CHECK(b.rows(true) == 300);
  b.observe(4, 300, 10s);
  CHECK(b.rows(true) == 300);
}

TEST_CASE("the budget finds the slice that meets the target, and follows when rows grow dearer") {
  prefill_budget b({.rows = 512, .while_decoding = 30ms, .alone = 250ms});
  CHECK(b.rows(true) <= 64);  // a careful first guess
  const auto run = [&](duration decode, duration row) {
    for (int i = 0; i < 60; ++i) {
      b.observe(8, 0, decode);
      const auto rows = b.rows(true);
      b.observe(8, rows, decode + row * rows);
    }
    return decode + row * b.rows(true);
  };
  CHECK(run(10ms, 100us) <= 30ms);
  CHECK(run(10ms, 100us) > 29ms);
  CHECK(run(10ms, 400us) <= 30ms);
  CHECK(run(10ms, 400us) > 29ms);
  CHECK(b.rows(false) == 512);  // 250 ms hold 625 of them
  CHECK(run(10ms, 1ms) <= 30ms);
  CHECK(b.rows(false) == 250);
}

TEST_CASE("a prompt moves on even where decoding alone exceeds the target") {
  prefill_budget b({.rows = 512, .while_decoding = 30ms});
  for (int i = 0; i < 20; ++i) b.observe(64, 0, 100ms);
  b.observe(64, 16, 110ms);
  CHECK(b.rows(true) == 16);
}

TEST_CASE("where rows cost nothing that can be measured, the slice is as long as it may be") {
  prefill_budget b({.rows = 512, .while_decoding = 30ms});
  b.observe(1, 64, 0ms);
  CHECK(b.rows(true) == 512);
}
