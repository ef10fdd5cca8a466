// Pools that give way and grow: who gives how much, who grows, and that a ledger is as before once it is
// undone.
#include "core/memory/pools.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "core/cache/page.h"
#include "core/memory/ledger.h"
#include "core/memory/plan.h"
#include "core/memory/plan_text.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::pools_test {

using namespace weir::core;

namespace {

constexpr std::uint64_t mb = 1u << 20, gb = 1u << 30;

auto_pool pool_of(std::uint64_t pages, std::uint64_t floor, std::uint64_t step = 1, std::uint64_t one = mb) {
  return {.page_bytes = one, .pages = pages, .floor = floor, .used = 0, .most = pages, .step = step};
}

auto_pool random_pool(std::mt19937_64& r) {
  auto_pool p;
  p.page_bytes = r() % 12 == 0 ? 0 : 1 + r() % (4 * mb);
  p.step = r() % 8 == 0 ? 0 : 1 + r() % 700;
  p.pages = 1 + r() % 60'000;
  p.floor = r() % (p.pages + 1);
  p.used = r() % 3 == 0 ? r() % (p.pages + 1) : 0;
  p.most = p.pages + (r() % 2 == 0 ? r() % 60'000 : 0);
  return p;
}

// A device full of models with random pools, each granted in its ledger.
struct device {
  explicit device(std::mt19937_64& r) : book({.name = "sim", .total = std::uint64_t{1} << 50}) {
    for (auto n = r() % 8; n > 0; --n) {
      pools.push_back(random_pool(r));
      memory_lines lines;
      lines.weights = r() % (8 * gb);
      lines.pages = pools.back().pages * pools.back().page_bytes;
      ids.push_back(book.grant("m" + std::to_string(n), lines).value());
      book.set_pool(ids.back(), pools.back());
    }
    free = r() % 3 == 0 ? 0 : r() % (16 * gb);
    rest = book.free() - free;
    memory_lines other;
    other.weights = rest;
    (void)book.grant("others", other).value();
  }
  ledger book;
  std::vector<auto_pool> pools;
  std::vector<ledger::grant_id> ids;
  std::uint64_t free = 0, rest = 0;
};

std::uint64_t given(const std::vector<auto_pool>& before, const std::vector<std::uint64_t>& after) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < after.size(); ++i) sum += (before[i].pages - after[i]) * before[i].page_bytes;
  return sum;
}

}  // namespace

TEST_CASE("pools: the floor is a whole sequence and a page a place, and never more than the pool") {
  CHECK(floor_of_pool(10'000, 0, 131'072, 64) == 2048 + 64);
  CHECK(floor_of_pool(10'000, 0, 2048, 16) == 128);  // 8,192 tokens
  CHECK(floor_of_pool(100, 0, 131'072, 64) == 100);
  CHECK(floor_of_pool(10'000, 640'000, 131'072, 64) == 10'000);
  CHECK(floor_of_pool(20'000, 640'000, 131'072, 64) == 10'000);
  CHECK(floor_of_pool(10'000, 64, 131'072, 64) == 2048);  // what it has admitted still fits
}

TEST_CASE("pools: the largest give first, down to equal bytes") {
  const std::vector<auto_pool> all{pool_of(100, 10), pool_of(60, 10), pool_of(30, 10)};
  CHECK(give_way(all, 0).value() == std::vector<std::uint64_t>{100, 60, 30});
  CHECK(give_way(all, 30 * mb).value() == std::vector<std::uint64_t>{70, 60, 30});
  CHECK(give_way(all, 60 * mb).value() == std::vector<std::uint64_t>{50, 50, 30});
  CHECK(give_way(all, 59 * mb).value() == std::vector<std::uint64_t>{51, 50, 30});
  CHECK(give_way(all, 160 * mb).value() == std::vector<std::uint64_t>{10, 10, 10});
  CHECK_FALSE(give_way(all, 160 * mb + 1).has_value());
}

TEST_CASE("pools: pages in use, steps that are not whole and pools of a fixed size stay") {
  auto busy = pool_of(100, 10), fixed = pool_of(100, 10, 0), coarse = pool_of(100, 10, 32);
  busy.used = 90;
  CHECK(most_given(busy) == 10 * mb);
  CHECK(most_given(fixed) == 0);
  CHECK(most_given(coarse) == 64 * mb);
  CHECK(give_way(std::vector{coarse}, 1).value() == std::vector<std::uint64_t>{64});
  CHECK(give_way(std::vector{busy, fixed, coarse}, 74 * mb).value() ==
        std::vector<std::uint64_t>{90, 100, 32});
  CHECK_FALSE(give_way(std::vector{busy, fixed, coarse}, 75 * mb).has_value());
}

TEST_CASE("pools: the one with the fewest bytes grows next, a piece at a time, up to what is of use") {
  auto a = pool_of(64, 10, 32), b = pool_of(40, 10, 32);
  a.most = 128;
  b.most = 100;
  const auto step = [&](std::uint64_t free, std::uint64_t piece = 0) {
    const auto next = next_to_grow(std::vector{a, b}, free, piece).value();
    (next.pool == 0 ? a : b).pages = next.pages;
    return std::pair(next.pool, next.pages);
  };
  CHECK_FALSE(next_to_grow(std::vector{a, b}, 23 * mb).has_value());
  CHECK(step(24 * mb) == std::pair<std::size_t, std::uint64_t>(1, 64));
  CHECK(step(gb) == std::pair<std::size_t, std::uint64_t>(0, 96));
  CHECK(step(gb, 64 * mb) == std::pair<std::size_t, std::uint64_t>(1, 96));  // whole steps
  CHECK(step(gb, 64 * mb) == std::pair<std::size_t, std::uint64_t>(0, 128));
  CHECK_FALSE(next_to_grow(std::vector{a, b}, gb).has_value());
}

TEST_CASE(
    "pools: a newcomer fits exactly where the sum fits, nobody is below its floor, and an undo is whole") {
  const auto devices = rounds(10'000);
  std::uint64_t fitted = 0, gave = 0;
  for (std::uint64_t i = 0; i < devices; ++i) {
    std::mt19937_64 random(drawn_seed(i));
    device d(random);
    std::uint64_t most = 0;
    for (const auto& p : d.pools) most += most_given(p);
    const auto wanted = random() % 4 == 0 ? most : random() % (most + most / 4 + 2);
    const auto after = give_way(d.pools, wanted);
    REQUIRE(after.has_value() == (wanted <= most));
    if (!after) continue;
    ++fitted;
    REQUIRE(given(d.pools, *after) >= wanted);
    const auto before = d.book.entries();
    std::uint64_t lowest_level = ~0ull;  // of a pool that gave: its bytes with one step more
    for (std::size_t k = 0; k < d.pools.size(); ++k) {
      const auto& p = d.pools[k];
      const auto now = (*after)[k];
      REQUIRE(now <= p.pages);
      if (now == p.pages) continue;
      ++gave;
      REQUIRE(now >= std::max(p.floor, p.used));
      REQUIRE(now % p.step == 0);
      lowest_level = std::min(lowest_level, (now + p.step) * p.page_bytes);
    }
    for (std::size_t k = 0; k < d.pools.size(); ++k) {  // equal bytes, to a step that could stay
      const auto& p = d.pools[k];
      if (p.step == 0 || (*after)[k] < p.step || lowest_level == ~0ull) continue;
      const auto but_one = ((*after)[k] / p.step - 1) * step_bytes(p);
      REQUIRE(but_one <= std::max(kept_steps(p) * step_bytes(p), lowest_level));
    }
    const auto free = d.book.free();
    for (std::size_t k = 0; k < d.pools.size(); ++k)
      REQUIRE(d.book.resize(d.ids[k], (*after)[k]).has_value());
    REQUIRE(d.book.free() == free + given(d.pools, *after));
    for (std::size_t k = d.pools.size(); k > 0; --k)
      REQUIRE(d.book.resize(d.ids[k - 1], d.pools[k - 1].pages).has_value());
    REQUIRE(d.book.free() == free);
    REQUIRE(d.book.entries() == before);
  }
  CHECK(fitted >= devices / 3);
  CHECK(gave >= devices / 2);
}

TEST_CASE("pools: they grow into what is free, to the last step, and never beyond it") {
  for (std::uint64_t i = 0; i < rounds(300); ++i) {
    std::mt19937_64 random(drawn_seed(20'000 + i));
    device d(random);
    const auto piece = random() % (2 * gb);
    for (int steps = 0;; ++steps) {
      REQUIRE(steps < 500'000);
      const auto next = next_to_grow(d.pools, d.book.free(), piece);
      if (!next) break;
      auto& p = d.pools[next->pool];
      REQUIRE(next->pages > p.pages);
      REQUIRE(next->pages <= p.most);
      REQUIRE(next->pages % p.step == 0);
      REQUIRE(d.book.resize(d.ids[next->pool], next->pages).has_value());
      p.pages = next->pages;
    }
    for (const auto& p : d.pools)
      if (p.step != 0 && p.page_bytes != 0 && p.pages < p.most / p.step * p.step)
        REQUIRE(d.book.free() < step_bytes(p));
  }
}

TEST_CASE("pools: a ledger refuses a pool that grows by more than is free, and nothing has changed") {
  ledger book({.name = "sim", .total = 100 * mb});
  memory_lines lines;
  lines.pages = 40 * mb;
  const auto id = book.grant("a", lines).value();
  book.set_pool(id, pool_of(40, 10));
  const auto before = book.entries();
  const auto no = book.resize(id, 101);
  REQUIRE(no.has_error());
  CHECK(no.error().code == errc::does_not_fit);
  CHECK(no.error().message ==
        "a: no room on sim for 61 pages more: 1048576 bytes are missing, 62914560 are free");
  CHECK(book.entries() == before);
  REQUIRE(book.resize(id, 100).has_value());
  CHECK(book.free() == 0);
  CHECK(book.entries().at(id).whole().pages == 100 * mb);
}

TEST_CASE("pools: a plan takes what pools can give, floors first, and the rest is divided in equal bytes") {
  plan_device d;
  d.name = "cuda:0";
  d.total = 1000 * mb;
  d.loaded = 900 * mb;
  d.pools.push_back({pool_of(800, 100, 8), "old", 7});
  model_needs in;
  in.name = "new";
  in.lines.weights = 200 * mb;
  in.pool = {.groups = {{mb, 0, 1}}, .context = 64 * 90, .max_batch = 10};
  const auto p = make_plan({d}, {in}).value();
  REQUIRE(p.fits());
  REQUIRE(p.devices[0].left_with.size() == 1);
  // 700 MB for pages: floors of 104 (whole steps) and 100, and 248 for each
  CHECK(p.devices[0].left_with[0] == 352);
  CHECK(p.models[0].pages == 348);
  CHECK(p.models[0].floor == 128);  // 8,192 tokens
  CHECK(plan_lines(p).at(2).find("old") != std::string::npos);
  CHECK(plan_lines(p).at(2).find("gives 448 of its 800 pages (0.5G)") != std::string::npos);
  CHECK(plan_json(p).find(R"("gives":[{"name":"old","pages":448,"bytes":469762048}])") != std::string::npos);

  in.lines.weights = 796 * mb - 90 * mb;  // the least of the newcomer, and the floor of the other
  CHECK(make_plan({d}, {in}).value().fits());
  in.lines.weights += 1;
  const auto no = make_plan({d}, {in}).value();
  REQUIRE_FALSE(no.fits());
  CHECK(no.lacks->bytes == 1);
  CHECK(no.devices[0].left_with.empty());
}

TEST_CASE("pools: random plans with pools that stay keep every floor and every byte") {
  std::uint64_t gave = 0;
  const auto plans = rounds(3000);
  for (std::uint64_t i = 0; i < plans; ++i) {
    std::mt19937_64 random(drawn_seed(40'000 + i));
    plan_device d;
    d.name = "cuda:0";
    std::uint64_t most = 0;
    for (auto n = random() % 5; n > 0; --n) {
      auto p = random_pool(random);
      d.loaded += p.pages * p.page_bytes + random() % gb;
      most += most_given(p);
      d.pools.push_back({p, "old" + std::to_string(n), n});
    }
    d.total = d.loaded + random() % (8 * gb);
    model_needs in;
    in.name = "new";
    in.lines.weights = random() % (most + 8 * gb);
    in.pool = {.groups = {{1 + random() % mb, 0, 1}},
               .context = static_cast<std::uint32_t>(1 + random() % 100'000),
               .max_batch = static_cast<std::uint32_t>(1 + random() % 16)};
    const bool numeric = random() % 2 == 0;
    if (numeric) in.pool.kv_tokens = 1 + random() % 1'000'000;
    const auto plan = make_plan({d}, {in}).value();
    const auto& row = plan.devices[0];
    const auto& m = plan.models[0];
    if (numeric) REQUIRE(plan.fits() == (bytes_of(m.lines) <= d.total - d.loaded + most));
    if (!plan.fits()) continue;
    std::uint64_t freed = 0;
    for (std::size_t k = 0; k < row.left_with.size(); ++k) {
      const auto& p = d.pools[k];
      REQUIRE(row.left_with[k] <= p.pages);
      if (row.left_with[k] < p.pages) REQUIRE(row.left_with[k] >= std::max(p.floor, p.used));
      freed += (p.pages - row.left_with[k]) * p.page_bytes;
    }
    gave += freed > 0 ? 1 : 0;
    REQUIRE(bytes_of(m.lines) <= d.total - d.loaded + freed);
  }
  CHECK(gave >= plans / 8);
}

}  // namespace weir::tests::pools_test
