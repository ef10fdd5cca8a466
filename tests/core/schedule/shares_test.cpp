#include "core/schedule/shares.h"

#include <catch2/catch.hpp>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::shares_test {

using namespace std::chrono_literals;
using core::duration;
using core::share_account;
using core::shares;
using core::step_kind;

namespace {

// Engines whose steps take the times that the test says, on a device that takes nothing beside them.
struct device {
  struct engine {
    share_account account;
    duration step;
    bool busy = true;
    duration used{};
    duration under_way{};  // of the overlapped loop: time of the step that was begun
  };

  explicit device(std::vector<engine> e, bool ahead = false) : engines(std::move(e)), overlaps(ahead) {}

  // One step; returns its engine, or -1 where none is busy.
  int step() {
    int first = -1;
    for (std::size_t i = 0; i < engines.size(); ++i) {
      auto& e = engines[i];
      order.look(e.account, e.busy);
      if (e.busy &&
          (first < 0 || shares::before(e.account, engines[static_cast<std::size_t>(first)].account)))
        first = static_cast<int>(i);
    }
    if (first < 0) return first;
    auto& e = engines[static_cast<std::size_t>(first)];
    order.begin(e.account);
    const duration takes = next_step ? next_step(e) : e.step;
    const duration over = overlaps ? std::exchange(e.under_way, takes) : takes;
    order.charge(e.account, over, overlaps ? step_kind::decode : step_kind::none);
    e.used += over;
    now += over;
    return first;
  }
  void run(duration d) {
    for (const auto end = now + d; now < end;)
      if (step() < 0) return;
  }
  double part(std::size_t i) const {
    duration all{};
    for (const auto& e : engines) all += e.used;
    return static_cast<double>(engines[i].used.count()) / static_cast<double>(all.count());
  }

  std::vector<engine> engines;
  bool overlaps;
  shares order;
  duration now{};
  std::function<duration(const engine&)> next_step;
};

device::engine with(double weight, duration step) { return {share_account(weight), step}; }

}  // namespace

TEST_CASE("shares: device time is divided as the weights are, whatever a step takes") {
  const bool overlaps = GENERATE(false, true);
  const auto w = GENERATE(std::pair(1.0, 1.0), std::pair(3.0, 1.0), std::pair(1.0, 9.0));
  device d({with(w.first, 5ms), with(w.second, 900us)}, overlaps);
  d.run(2s);
  CHECK(d.part(0) == Approx(w.first / (w.first + w.second)).margin(0.005));
}

TEST_CASE("shares: equal engines take turns, and a tie goes to the one that stepped least recently") {
  device d({with(1, 1ms), with(1, 1ms), with(1, 1ms)});
  std::vector<int> turns;
  for (int i = 0; i < 9; ++i) turns.push_back(d.step());
  CHECK(turns == std::vector{0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("shares: while an engine rests the others have its part, and it comes back without a credit") {
  device d({with(1, 5ms), with(1, 1ms)});
  d.run(100ms);
  d.engines[0].busy = false;
  const auto before = d.engines[1].used;
  d.run(1s);
  CHECK(d.engines[1].used - before == 1s);
  d.engines[0].busy = true;
  d.engines[0].used = d.engines[1].used = {};
  CHECK(d.step() == 0);  // it waits for nobody
  d.run(40ms);
  CHECK(d.part(0) == Approx(0.5).margin(0.12));  // a step of 5 ms in 45
}

TEST_CASE("shares: what an engine took too much it owes when it comes back") {
  device d({with(1, 100ms), with(1, 1ms)});
  CHECK(d.step() == 0);
  d.engines[0].busy = false;
  d.run(10ms);
  d.engines[0].busy = true;
  d.engines[1].used = {};
  while (d.step() != 0) continue;
  CHECK(d.engines[1].used >= 89ms);
  CHECK(d.engines[1].used <= 91ms);
}

TEST_CASE("shares: a weight that changes holds from then on") {
  device d({with(1, 3ms), with(1, 2ms)});
  d.run(1s);
  CHECK(d.part(0) == Approx(0.5).margin(0.005));
  d.engines[0].account.set_weight(4);
  for (auto& e : d.engines) e.used = {};
  d.run(1s);
  CHECK(d.part(0) == Approx(0.8).margin(0.01));
}

TEST_CASE("shares: steps that take no time take turns, and hold up nobody for ever") {
  device d({with(1, 0ms), with(1, 1ms)});
  int others = 0;
  for (int i = 0; i < 4000; ++i) others += d.step() == 1;
  CHECK(others >= 3);
}

TEST_CASE("shares: a weight is a number from 0.001 to 1000") {
  CHECK(core::parse_weight("3") == 3.0);
  CHECK(core::parse_weight("0.25") == 0.25);
  CHECK(core::parse_weight("1000") == 1000.0);
  for (const char* bad : {"", "0", "-1", "1001", "0.0001", "nan", "inf", "3x", " 3", "1,5", "1e4"})
    CHECK_FALSE(core::parse_weight(bad));
}

// Over any time in which two engines have work, what they took, divided by their weights, differs by no more
// than a step of each; where steps overlap, by one more of each.
TEST_CASE("shares: random engines that come and go keep the bound of fair queueing") {
  for (std::uint64_t seed = 0; seed < rounds(200); ++seed) {
    std::mt19937_64 random(drawn_seed(seed));
    const auto from = [&](double least, double most) {
      return std::uniform_real_distribution(least, most)(random);
    };
    std::vector<device::engine> engines;
    const std::size_t n = 2 + random() % 3;
    for (std::size_t i = 0; i < n; ++i)
      engines.push_back(with(from(0.1, 9), duration(static_cast<std::int64_t>(from(2e5, 4e7)))));
    device d(std::move(engines), seed % 2 == 1);
    d.next_step = [&](const device::engine& e) {
      return duration(static_cast<std::int64_t>(static_cast<double>(e.step.count()) * from(0.5, 1)));
    };
    CAPTURE(seed);
    // by pair: extremes of the difference since both have had work
    std::vector<std::vector<std::optional<std::pair<double, double>>>> seen(
        n, std::vector<std::optional<std::pair<double, double>>>(n));
    const auto taken = [&](std::size_t i) {
      return static_cast<double>(d.engines[i].used.count()) / d.engines[i].account.weight();
    };
    const auto longest = [&](std::size_t i) {
      return static_cast<double>(d.engines[i].step.count()) / d.engines[i].account.weight();
    };
    for (int step = 0; step < 400; ++step) {
      if (random() % 50 == 0) {
        auto& e = d.engines[random() % n];
        e.busy = !e.busy;
      }
      d.step();
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < i; ++j) {
          auto& range = seen[i][j];
          if (!d.engines[i].busy || !d.engines[j].busy) {
            range.reset();
            continue;
          }
          const double now = taken(i) - taken(j);
          if (!range) range.emplace(now, now);
          range->first = std::min(range->first, now);
          range->second = std::max(range->second, now);
          const double bound = (d.overlaps ? 2 : 1) * (longest(i) + longest(j));
          REQUIRE(range->second - range->first <= 2 * bound);
        }
    }
  }
}

}  // namespace weir::tests::shares_test
