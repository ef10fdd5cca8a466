#include "actors/evict.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <tuple>

#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::evict_test {

using actors::leave_for;
using actors::leaver;
using indices = std::vector<std::size_t>;

namespace {

// Looks at every set.
std::optional<indices> by_hand(const std::vector<leaver>& all, std::uint64_t bytes, std::size_t count) {
  std::optional<std::tuple<std::uint64_t, std::int64_t, std::size_t, indices>> best;
  for (std::uint32_t set = 0; set < 1u << all.size(); ++set) {
    std::uint64_t cost = 0, frees = 0;
    std::int64_t latest = INT64_MIN;
    indices of;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!(set >> i & 1)) continue;
      cost += all[i].ms_to_return * all[i].jobs_lately;
      frees += all[i].bytes;
      latest = std::max(latest, all[i].last_use);
      of.push_back(i);
    }
    if (frees < bytes || of.size() < count) continue;
    std::tuple one(cost, latest, of.size(), of);
    if (!best || one < *best) best = std::move(one);
  }
  if (!best) return std::nullopt;
  return std::get<indices>(*best);
}

}  // namespace

TEST_CASE("evict: the cheapest set leaves, and of equals the one that rests the longest") {
  const std::vector<leaver> all{{100, 1000, 5, 30}, {100, 1000, 1, 40}, {50, 1000, 0, 20}, {50, 1000, 0, 10}};
  CHECK(leave_for(all, 0) == indices{});
  CHECK(leave_for(all, 50) == indices{3});
  CHECK(leave_for(all, 100) == indices{2, 3});
  CHECK(leave_for(all, 101) == indices{1, 2});  // cost 1,000; used at 40 with either of the small ones
  CHECK(leave_for(all, 300) == indices{0, 1, 2, 3});
  CHECK(leave_for(all, 301) == std::nullopt);
  CHECK(leave_for(all, 0, 2) == indices{2, 3});
  CHECK(leave_for(all, 0, 5) == std::nullopt);
  CHECK(leave_for({}, 1) == std::nullopt);
}

TEST_CASE("evict: a cost that has no number is the largest") {
  const std::vector<leaver> all{{10, UINT64_MAX, 2, 1}, {10, 1, 1, 2}};
  CHECK(leave_for(all, 10) == indices{1});
  CHECK(leave_for(all, 20) == indices{0, 1});
}

TEST_CASE("evict: random models, against every set") {
  std::mt19937_64 random(drawn_seed(0));
  std::uint64_t fits = 0, not_at_all = 0;
  const auto cases = rounds(10'000);
  for (std::uint64_t i = 0; i < cases; ++i) {
    std::vector<leaver> all(random() % 9);
    const std::uint64_t spread = 1 + random() % 6;  // few values: many equals
    for (auto& m : all)
      m = {random() % (3 * spread), random() % spread, random() % spread,
           static_cast<std::int64_t>(random() % spread)};
    const std::uint64_t bytes = random() % (1 + 6 * spread);
    const std::size_t count = random() % 3;
    CAPTURE(i, bytes, count, all.size());
    const auto got = leave_for(all, bytes, count);
    REQUIRE(got == by_hand(all, bytes, count));
    ++(got ? fits : not_at_all);
  }
  CHECK(fits >= cases / 10);
  CHECK(not_at_all >= cases / 50);
}

}  // namespace weir::tests::evict_test
