#include "actors/token_allowance.h"

#include <catch2/catch.hpp>
#include <random>
#include <thread>
#include <vector>

namespace weir::tests::token_allowance_test {

using actors::token_allowance;
using namespace std::chrono_literals;

namespace {

constexpr core::time_point begin{1h};

// The same token bucket as it is usually written: a level that rises with time, up to a cap.
struct bucket {
  double per_min, level;
  core::time_point last;
  void flow(core::time_point now) {
    level = std::min(per_min,
                     level + per_min * std::chrono::duration<double, std::ratio<60>>(now - last).count());
    last = now;
  }
};

}  // namespace

TEST_CASE("token_allowance: without a limit it is always open and counts nothing") {
  token_allowance a;
  a.charge(1'000'000'000, begin);
  CHECK(a.open(begin));
  CHECK(a.per_min() == 0);
  CHECK(a.left(begin) == 0);
  a.set(60, begin);  // what was used before the limit is not held against anybody
  CHECK(a.left(begin) == 60);
}

TEST_CASE("token_allowance: a minute's tokens at once, then one token after exactly its time") {
  token_allowance a;
  a.set(60, begin);
  a.charge(60, begin);
  CHECK(a.left(begin) == 0);
  CHECK(a.wait(begin) == 1s);
  CHECK_FALSE(a.open(begin + 1s - 1ns));
  CHECK(a.open(begin + 1s));
  CHECK(a.left(begin + 1s) == 1);
  CHECK(a.until_full(begin) == 60s);
  CHECK(a.left(begin + 2min) == 60);  // never more than a minute's
  CHECK(a.until_full(begin + 2min) == 0s);
}

TEST_CASE("token_allowance: a debt is paid before the next token") {
  token_allowance a;
  a.set(60, begin);
  a.charge(180, begin);
  CHECK(a.wait(begin) == 2min + 1s);
  CHECK(a.left(begin + 1min) == 0);
  CHECK(a.open(begin + 2min + 1s));
}

TEST_CASE("token_allowance: another limit keeps what is missing as many tokens") {
  token_allowance a;
  a.set(60, begin);
  a.charge(90, begin);  // 30 in debt
  a.set(600, begin);    // now 510 of 600 are there
  CHECK(a.left(begin) == 510);
  a.set(60, begin);
  CHECK(a.left(begin) == 0);
  CHECK(a.wait(begin) == 31s);
  a.set(0, begin);
  CHECK(a.open(begin));
  a.set(60, begin);
  CHECK(a.left(begin) == 60);
}

TEST_CASE("token_allowance: it agrees with a level that is filled and capped, whatever is used when") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const std::uint64_t per_min = 1 + random() % (std::uint64_t{1} << random() % 30);
    token_allowance a;
    a.set(per_min, begin);
    bucket b{static_cast<double>(per_min), static_cast<double>(per_min), begin};
    auto now = begin;
    for (int i = 0; i < 500; ++i) {
      now += core::duration(static_cast<std::int64_t>(random() % (std::uint64_t{1} << random() % 37)));
      b.flow(now);
      const double slack = 1e-6 * b.per_min + 1e-3;
      REQUIRE(static_cast<double>(a.left(now)) <= std::max(0.0, b.level) + slack);
      REQUIRE(static_cast<double>(a.left(now)) >= b.level - 1 - slack);
      if (const auto wait = a.wait(now); wait > 0ns) {
        REQUIRE_FALSE(a.open(now + wait - 1ns));
        REQUIRE(a.open(now + wait));
        const double missing = (1 - b.level) / b.per_min * 60e9;
        REQUIRE(static_cast<double>(wait.count()) == Approx(missing).epsilon(1e-5).margin(1000));
      }
      const auto used = random() % (1 + std::min<std::uint64_t>(per_min / 4, 100'000'000));  // as a job can
      a.charge(used, now);
      b.level -= static_cast<double>(used);
    }
  }
}

TEST_CASE("token_allowance: the largest debt is a month's, and nothing overflows") {
  token_allowance a;
  a.set(1, begin);
  for (int i = 0; i < 100; ++i) a.charge(UINT64_MAX, begin);
  CHECK(a.wait(begin) <= 30 * 24h);
  CHECK(a.wait(begin) > 29 * 24h);
  a.set(token_allowance::most_per_min, begin);
  a.set(1, begin);
  CHECK(a.wait(begin) <= 30 * 24h);
}

TEST_CASE("token_allowance: no charge of several threads is lost") {
  token_allowance a;
  a.set(6'000'000, begin);
  constexpr int threads = 4, charges = 20000;
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < charges; ++i) a.charge(1, begin);
    });
  all.clear();
  CHECK(a.left(begin) == 6'000'000 - threads * charges);
}

}  // namespace weir::tests::token_allowance_test
