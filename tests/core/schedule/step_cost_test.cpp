#include "core/schedule/step_cost.h"

#include <catch2/catch.hpp>
#include <random>

namespace weir::tests::step_cost_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

// ns of a step, of a row of a stream and of a prompt row.
struct device {
  double step = 4e6, stream = 30e3, prompt = 20e3;
  double of(std::uint32_t streams, std::uint32_t prompts) const {
    return step + stream * streams + prompt * prompts;
  }
};

duration as_time(double ns) { return duration(static_cast<std::int64_t>(ns)); }

}  // namespace

TEST_CASE("step cost: the parts of many devices are found in a few steps") {
  std::mt19937 random(3);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  for (int day = 0; day < 200; ++day) {
    const device d{between(1e5, 2e7), between(0, 1e5), between(1e3, 5e5)};
    const double noise = day % 2 ? 0.05 : 0;
    step_cost cost;
    for (int i = 0; i < 60; ++i) {
      const auto streams = 1 + random() % 256, rows = random() % 3 ? random() % 1024 : 0;
      cost.observe(streams, rows, as_time(d.of(streams, rows) * (1 + noise * between(-1, 1))));
    }
    CAPTURE(day, d.step, d.stream, d.prompt);
    for (const auto& [streams, rows] : {std::pair(32u, 0u), {32u, 512u}, {200u, 128u}, {128u, 1024u}})
      CHECK(cost.of(streams, rows) == Approx(d.of(streams, rows)).epsilon(noise > 0 ? 0.15 : 0.01));
    CHECK(cost.spread() <= noise + 0.01);
  }
}

TEST_CASE("step cost: rows within a time are those that take it") {
  step_cost cost;
  const device d;
  for (std::uint32_t i = 0; i < 40; ++i)
    for (const std::uint32_t rows : {0u, 100u + 10 * i}) cost.observe(32, rows, as_time(d.of(32, rows)));
  CHECK(cost.rows_within(32, d.of(32, 700)) == Approx(700).epsilon(0.01));
  CHECK(cost.rows_within(32, d.of(32, 0) / 2) < 0);
  CHECK(cost.widest() == 490);
}

TEST_CASE("step cost: steps too alike to tell their parts are said to be a prompt's") {
  step_cost cost;
  for (int i = 0; i < 10; ++i) cost.observe(0, 100, 10ms);
  CHECK(cost.of(0, 100) == Approx(10e6).epsilon(0.01));
  CHECK(cost.of(0, 200) > 19e6);
}

TEST_CASE("step cost: a long time without prompts makes their rows no less known") {
  step_cost cost;
  const device d;
  for (int i = 0; i < 20; ++i) {
    cost.observe(32, 0, as_time(d.of(32, 0)));
    cost.observe(32, 512, as_time(d.of(32, 512)));
  }
  for (int i = 0; i < 100000; ++i) cost.observe(32, 0, as_time(d.of(32, 0)));
  CHECK(cost.of(32, 512) == Approx(d.of(32, 512)).epsilon(0.01));
}

TEST_CASE("step cost: one step that took long hardly counts, and a device that became slow is followed") {
  step_cost cost;
  const device d, slow{12e6, 90e3, 60e3};
  const auto run = [&](const device& on, int steps) {
    for (int i = 0; i < steps; ++i)
      for (const std::uint32_t rows : {0u, 256u, 512u}) cost.observe(64, rows, as_time(on.of(64, rows)));
  };
  run(d, 20);
  cost.observe(64, 512, 10s);
  CHECK(cost.of(64, 512) < 2 * d.of(64, 512));
  run(slow, 20);
  CHECK(cost.of(64, 512) == Approx(slow.of(64, 512)).epsilon(0.1));
}

TEST_CASE("step cost: steps that take no time have no negative parts") {
  step_cost cost;
  for (std::uint32_t i = 0; i < 20; ++i) {
    cost.observe(10 + i, 0, duration(20ms) - i * 500us);  // the more rows, the quicker
    cost.observe(10, i, 0ms);
  }
  for (const std::uint32_t rows : {0u, 100u, 5000u}) CHECK(cost.of(20, rows) >= 0);
  CHECK(cost.rows_within(20, 1e9) > 0);
}

}  // namespace weir::tests::step_cost_test
