#include "core/schedule/prompt_budget.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

namespace weir::tests::prompt_budget_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

// Prompt rows of a step beside `streams` streams where `waiting` long prompts wait.
std::uint32_t rows_of(prompt_budget& b, std::uint32_t streams, std::size_t waiting) {
  return b.rows(streams, std::vector<prompt_demand>(waiting, {5000}));
}

}  // namespace

TEST_CASE("without a target the rows alone bound a slice") {
  prompt_budget b({.rows = 300});
  CHECK(rows_of(b, 4, 1) == 300);
  b.observe(4, 300, 10s);
  CHECK(rows_of(b, 4, 1) == 300);
}

TEST_CASE("the budget finds the slice that keeps the target, and follows when rows grow dearer") {
  prompt_budget b({.rows = 512, .while_decoding = 30ms, .alone = 250ms});
  CHECK(rows_of(b, 8, 1) <= 64);  // a careful first guess
  const auto run = [&](duration decode, duration row) {
    for (int i = 0; i < 60; ++i) {
      b.observe(8, 0, decode);
      const auto rows = rows_of(b, 8, 1);
      b.observe(8, rows, decode + row * rows);
    }
    return decode + row * rows_of(b, 8, 1);
  };
  CHECK(run(10ms, 100us) <= 30ms);
  CHECK(run(10ms, 100us) > 29ms);
  CHECK(run(10ms, 400us) <= 30ms);
  CHECK(run(10ms, 400us) > 29ms);
  CHECK(rows_of(b, 0, 1) == 512);  // 250 ms hold 625 of them
  CHECK(run(10ms, 1ms) <= 30ms);
  CHECK(rows_of(b, 0, 1) == Approx(245).epsilon(0.02));  // the step's own part takes the rest
}

TEST_CASE("a prompt alone: its steps end at the target, whatever slices beside streams cost") {
  prompt_budget b({.rows = 2048, .while_decoding = 30ms, .alone = 250ms});
  const auto alone = [](std::uint32_t rows) { return 12ms + 150us * rows; };
  const auto beside = [](std::uint32_t rows) { return 10ms + 400us * rows; };
  for (int i = 0; i < 60; ++i) {
    b.observe(8, 0, beside(0));
    const auto with_streams = rows_of(b, 8, 1), without = rows_of(b, 0, 1);
    b.observe(8, with_streams, beside(with_streams));
    b.observe(0, without, alone(without));
  }
  CHECK(alone(rows_of(b, 0, 1)) <= 251ms);
  CHECK(alone(rows_of(b, 0, 1)) >= 240ms);
  CHECK(beside(rows_of(b, 8, 1)) <= 30ms);
  CHECK(beside(rows_of(b, 8, 1)) > 29ms);
}

TEST_CASE("a device that became slow, and fast again, is followed within a few slices") {
  prompt_budget b({.rows = 512, .while_decoding = 30ms});
  for (const int times : {1, 3, 1}) {
    const auto took = [&](std::uint32_t rows) { return times * (5ms + 50us * rows); };
    for (int i = 0; i < 12; ++i) {
      if (i % 4 == 0) b.observe(64, 0, took(0));
      const auto rows = rows_of(b, 64, 1);
      b.observe(64, rows, took(rows));
    }
    CAPTURE(times, b.granted());
    CHECK(took(rows_of(b, 64, 1)) <= 36ms);
    CHECK(took(rows_of(b, 64, 1)) >= 24ms);
  }
}

TEST_CASE("a prompt moves on even where decoding alone exceeds the target") {
  prompt_budget b({.rows = 512, .while_decoding = 30ms});
  for (int i = 0; i < 20; ++i) b.observe(64, 0, 100ms);
  b.observe(64, 16, 110ms);
  CHECK(rows_of(b, 64, 1) == 16);
}

TEST_CASE("where rows cost nothing that can be measured, the slice is as long as it may be") {
  prompt_budget b({.rows = 512, .while_decoding = 30ms});
  b.observe(1, 64, 0ms);
  CHECK(rows_of(b, 1, 1) == 512);
}

namespace {

// A device whose products read the weights once for up to 160 rows, and take time for each further row. The
// rest of a slice's work takes as long for one row as for many.
duration device_step(std::uint32_t decode_rows, std::uint32_t prompt_rows) {
  const std::uint32_t rows = decode_rows + prompt_rows;
  duration took = 4ms + 30us * decode_rows + (prompt_rows ? duration(300us) : duration{});
  if (rows > 160) took += 24us * (rows - 160);
  return took;
}

// Runs prompts of `length` rows one after the other, each behind some steps of decoding alone. run() returns
// the longest step of the last prompt.
struct prompts_beside {
  prompt_budget& budget;
  std::uint32_t decoding, waiting = 1;

  duration run(int prompts, std::uint32_t length, int steps_between = 20) {
    duration longest{};
    for (int p = 0; p < prompts; ++p) {
      longest = {};
      for (int i = 0; i < steps_between; ++i) budget.observe(decoding, 0, device_step(decoding, 0));
      for (std::uint32_t left = length; left > 0;) {
        const auto rows = std::min(left, rows_of(budget, decoding, waiting));
        const auto took = device_step(decoding, rows);
        budget.observe(decoding, rows, took);
        longest = std::max(longest, took);
        left -= rows;
      }
    }
    return longest;
  }
};

}  // namespace

TEST_CASE("a share of a step: slices end up at it, and short ones that end a prompt do not mislead") {
  for (const std::uint32_t decoding : {1u, 8u, 64u, 256u}) {
    prompt_budget b({.rows = 512, .share = 0.4});
    for (int i = 0; i < 4; ++i) b.observe(0, 512, 12ms);  // prompts in steps without decoding
    const double step = std::chrono::duration<double>(device_step(decoding, 0)).count();
    const double longest =
        std::chrono::duration<double>(prompts_beside{b, decoding}.run(40, 2000 + 7)).count();
    CAPTURE(decoding, step, longest);
    CHECK(longest <= 1.45 * step);
    CHECK(longest >= 1.3 * step);
  }
}

TEST_CASE("a share of a step: one slice that took long is not believed for long") {
  prompt_budget b({.rows = 512, .share = 0.4});
  prompts_beside d{b, 64};
  d.run(10, 2000);
  const auto usual = rows_of(b, 64, 1);
  b.observe(64, usual, 200ms);
  CHECK(rows_of(b, 64, 1) >= usual / 2);
  d.run(2, 2000);
  CHECK(rows_of(b, 64, 1) == Approx(usual).epsilon(0.1));
}

TEST_CASE("a share of a step is one of a step like this, measured not long ago") {
  prompt_budget b({.rows = 512, .share = 0.4});
  CHECK(rows_of(b, 8, 1) == 0);  // how long a step takes is not known yet
  b.observe(8, 0, 4ms);
  CHECK(rows_of(b, 8, 1) == 64);
  b.observe(8, 64, 5ms);
  CHECK(rows_of(b, 8, 1) > 0);
  CHECK(rows_of(b, 15, 1) > 0);
  CHECK(rows_of(b, 16, 1) == 0);  // twice as many streams
  CHECK(rows_of(b, 4, 1) == 0);
  CHECK(rows_of(b, 0, 1) == 512);  // nobody waits for this one
  int slices = 0;
  for (; rows_of(b, 8, 1) > 0; ++slices) b.observe(8, rows_of(b, 8, 1), 5ms);
  CHECK(slices >= 50);
  CHECK(slices <= 64);
  b.observe(8, 0, 6ms);
  CHECK(rows_of(b, 8, 1) > 0);
}

TEST_CASE("a share of a step grows where many wait, and not for a few") {
  prompt_budget b({.rows = 2048, .share = 0.4});
  b.observe(64, 0, 10ms);
  b.observe(64, 64, 10ms + 64 * 25us);
  const auto few = rows_of(b, 64, 1);
  CHECK(few == Approx(160).epsilon(0.015));  // 4 ms
  CHECK(rows_of(b, 64, 8) == few);
  CHECK(rows_of(b, 64, 16) == few);  // an eighth of those that decode, and eight more
  CHECK(rows_of(b, 64, 24) == Approx(2 * few).epsilon(0.01));
  CHECK(rows_of(b, 64, 32) == Approx(3 * few).epsilon(0.01));
}

TEST_CASE("a share of a step grows where fewer decode than wait, however few they are") {
  prompt_budget b({.rows = 2048, .share = 0.4});
  b.observe(2, 0, 10ms);
  b.observe(2, 64, 10ms + 64 * 25us);
  CHECK(rows_of(b, 2, 2) == Approx(160).epsilon(0.015));
  CHECK(rows_of(b, 2, 4) == Approx(320).epsilon(0.015));
  CHECK(rows_of(b, 2, 6) == Approx(480).epsilon(0.015));
}

TEST_CASE("a share of a step ends at 512 rows, however many wait, and nobody's step does not") {
  for (const std::uint32_t decoding : {1u, 64u, 256u}) {
    prompt_budget b({.rows = 2048, .share = 0.4});
    b.observe(decoding, 0, 10ms);
    b.observe(decoding, 64, 10ms + 64 * 20us);
    CAPTURE(decoding);
    CHECK(rows_of(b, decoding, 10 * decoding + 100) == 512);
    CHECK(rows_of(b, 0, 10 * decoding + 100) == 2048);
  }
}

TEST_CASE("of a whole step and a share of one the tighter bound counts") {
  prompt_budget b({.rows = 512, .while_decoding = 10ms, .share = 0.8});
  b.observe(8, 0, 4ms);
  b.observe(8, 64, 4ms + 64 * 20us);
  CHECK(rows_of(b, 8, 1) == Approx(160).epsilon(0.015));  // 3.2 ms
  b.observe(16, 0, 6ms);
  CHECK(rows_of(b, 16, 1) == 200);  // 4 ms, not 4.8
}

TEST_CASE("a share of a step: where any slice takes longer than that, slices are those that take no longer") {
  for (const auto& [decoding, least] :
       {std::pair(1u, 63u), std::pair(8u, 56u), std::pair(9u, 128u), std::pair(64u, 128u)}) {
    prompt_budget b({.rows = 512, .share = 0.4});
    b.observe(decoding, 0, 4ms);
    for (int i = 0; i < 50; ++i) b.observe(decoding, rows_of(b, decoding, 1), 9ms);
    CHECK(rows_of(b, decoding, 1) == least);
    b.observe(decoding, 0, 4ms);
    for (int i = 0; i < 50; ++i) b.observe(decoding, rows_of(b, decoding, 1), 4ms + least * 15us);
    CHECK(rows_of(b, decoding, 1) ==
          least);  // 1.6 ms have room for 106 rows, which would take as long as 128
    b.observe(decoding, 0, 4ms);
    for (int i = 0; i < 50; ++i) b.observe(decoding, rows_of(b, decoding, 1), 4500us);
    CHECK(rows_of(b, decoding, 1) > 128);
  }
}

TEST_CASE("in company a slice fits the turn, beside streams and alone, and alone again it does not have to") {
  const bool bounds = GENERATE(false, true);
  prompt_budget b(bounds ? prompt_budget::targets{.rows = 4096, .while_decoding = 200ms, .alone = 250ms}
                         : prompt_budget::targets{.rows = 4096});
  const auto cost = [](std::uint32_t rows) { return 5ms + 100us * rows; };
  b.set_company(20ms);
  for (int i = 0; i < 60; ++i) {
    b.observe(8, 0, cost(0));
    const auto beside = rows_of(b, 8, 1), without = rows_of(b, 0, 1);
    b.observe(8, beside, cost(beside));
    b.observe(0, without, cost(without));
  }
  CHECK(cost(rows_of(b, 8, 1)) <= 20ms);
  CHECK(cost(rows_of(b, 8, 1)) >= 19ms);
  CHECK(cost(rows_of(b, 0, 1)) <= 20ms);
  CHECK(cost(rows_of(b, 0, 1)) >= 19ms);
  b.set_company({});
  CHECK(rows_of(b, 8, 1) > 1500);
  CHECK(rows_of(b, 0, 1) > 1500);
  b.set_company(500ms);  // it widens nothing
  if (bounds) {
    CHECK(cost(rows_of(b, 8, 1)) <= 200ms);
    CHECK(cost(rows_of(b, 0, 1)) <= 250ms);
  }
}

TEST_CASE("in company rows are learned from the device's time, whatever the neighbours took") {
  prompt_budget b({.rows = 4096, .while_decoding = 30ms});
  for (int i = 0; i < 60; ++i) {
    b.observe(8, 0, 5ms, 80ms);
    b.observe(8, 100, 15ms, 90ms);
  }
  CHECK(rows_of(b, 8, 1) == Approx(250).epsilon(0.05));
}

TEST_CASE("in company the turn bounds a slice with an objective, too") {
  prompt_budget b({.rows = 4096, .slo = {.ttft = 1s, .tpot = 100ms}});
  b.set_company(20ms);
  for (int i = 0; i < 60; ++i) {
    b.observe(8, 0, 5ms);
    const auto rows = rows_of(b, 8, 1);
    b.observe(8, rows, 5ms + 100us * rows);
  }
  CHECK(5ms + 100us * rows_of(b, 8, 1) <= 20ms);
}

}  // namespace weir::tests::prompt_budget_test
