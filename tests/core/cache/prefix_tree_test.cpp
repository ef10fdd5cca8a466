// The prefix tree against a plain one: a map from whole prefixes to pages.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "core/cache/page_pool.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::prefix_tree_test {

using namespace weir::core;

namespace {

using ids_array = std::array<token_id, page_tokens>;

ids_array ids_of(token_id first) {
  ids_array ids;
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = first + static_cast<token_id>(i);
  return ids;
}

// A chain of pages, each named, each holding one reference.
struct chain {
  std::vector<page_id> pages;
  page_name last = root_name("", "f32");
};

void extend(page_pool& pool, chain& c, token_id what) {
  const auto ids = ids_of(what);
  const auto name = name_of(c.last, ids);
  page_id p = pool.names().find(name, ids);
  if (p == no_page) {
    p = pool.take();
    pool.name(p, c.pages.empty() ? no_page : c.pages.back(), c.last, name, ids);
  } else {
    pool.share(p);
  }
  c.pages.push_back(p);
  c.last = name;
}

void release(page_pool& pool, chain& c) {
  for (; !c.pages.empty(); c.pages.pop_back()) pool.release(c.pages.back());
}

std::string check(const page_pool& pool) {
  return pool.names().check([&](page_id p) { return pool.references(p) > 0; });
}

}  // namespace

TEST_CASE("a page's name says its own ids, all before them, the salt, and the type of its numbers") {
  const auto a = ids_of(1), b = ids_of(2);
  const auto root = root_name("", "f32");
  CHECK(name_of(root, a) == name_of(root, a));
  CHECK(name_of(root, a) != name_of(root, b));
  CHECK(name_of(name_of(root, a), b) != name_of(name_of(root, b), b));
  CHECK(root_name("one", "f32") != root_name("two", "f32"));
  CHECK(name_of(root_name("one", "f32"), a) != name_of(root_name("two", "f32"), a));
  CHECK(root_name("one", "f32") != root_name("one", "q8"));
  CHECK(root_name("", "bf16") != root_name("", "fp8"));
  auto last = a;
  last.back() ^= 1;
  CHECK(name_of(root, last) != name_of(root, a));
}

TEST_CASE("a released page keeps its name and is found again, until its memory is needed") {
  page_pool pool(3);
  chain c;
  extend(pool, c, 100);
  extend(pool, c, 200);
  const auto pages = c.pages;
  release(pool, c);
  CHECK(pool.cached() == 2);
  CHECK(pool.used() == 0);
  CHECK(pool.available() == 3);
  c = {};
  extend(pool, c, 100);
  CHECK(c.pages[0] == pages[0]);
  CHECK(pool.cached() == 1);
  CHECK(pool.take() != pages[1]);  // the free one first
  CHECK(pool.take() == pages[1]);  // then the cached
  CHECK(pool.available() == 0);
  CHECK(pool.names().find(name_of(c.last, ids_of(200)), ids_of(200)) == no_page);
  CHECK(check(pool).empty());
}

TEST_CASE("the cache gives up leaves first, the longest unused before all others") {
  page_pool pool(6);
  chain old, young, shared;
  extend(pool, old, 100);
  extend(pool, old, 200);
  extend(pool, old, 300);
  extend(pool, young, 400);
  extend(pool, young, 500);
  const auto o = old.pages, y = young.pages;
  pool.take();
  release(pool, old);
  extend(pool, shared, 100);  // the head of the old one is used again
  release(pool, young);
  release(pool, shared);
  std::vector<page_id> given_up;
  while (pool.available() > 0) given_up.push_back(pool.take());
  CHECK(given_up == std::vector<page_id>{o[2], o[1], y[1], y[0], o[0]});
  CHECK(check(pool).empty());
}

TEST_CASE("a name alone is no hit: the ids are compared, too") {
  page_pool pool(2);
  const auto a = ids_of(1), b = ids_of(7);
  const auto name = name_of(root_name("", "f32"), a);
  const page_id p = pool.take();
  pool.name(p, no_page, root_name("", "f32"), name, a);
  CHECK(pool.names().find(name, a) == p);
  CHECK(pool.names().find(name, b) == no_page);
}

TEST_CASE("the closest page is the one that agrees longest, under the same salt alone") {
  page_pool pool(4);
  const auto root = root_name("a", "f32");
  std::vector<page_id> pages;
  for (const int cut : {10, 40, 20}) {
    auto ids = ids_of(1);
    std::fill(ids.begin() + cut, ids.end(), 999 + cut);
    pages.push_back(pool.take());
    pool.name(pages.back(), no_page, root, name_of(root, ids), ids);
  }
  const auto wanted = ids_of(1);
  auto like = pool.names().closest(root, wanted);
  CHECK(like.page == pages[1]);
  CHECK(like.equal == 40);
  like = pool.names().closest(root, std::span(wanted).first(15));
  CHECK(like.equal == 15);
  CHECK(pool.names().closest(root_name("b", "f32"), wanted).page == no_page);
  CHECK(pool.names().closest(root, ids_of(5000)).page == no_page);
}

TEST_CASE("a pool whose end moves: pages that stay keep names and references, and nothing above is taken") {
  std::mt19937 random(weir::tests::drawn_seed(11));
  std::uint64_t moved = 0, evicted = 0, grown = 0;
  for (unsigned round = 0; round < weir::tests::rounds(40); ++round) {
    page_pool pool(40, nullptr, 60);
    std::vector<chain> chains(8);
    std::vector<page_move> moves;
    for (int act = 0; act < 200; ++act) {
      chain& c = chains[random() % chains.size()];
      if (random() % 4 == 0) {
        release(pool, c);
        c = {};
      }
      if (pool.available() > 0) extend(pool, c, static_cast<token_id>(random() % 3));
      if (random() % 6 == 0) {
        const auto end = static_cast<std::uint32_t>(1 + random() % 60);
        if (pool.used() > end) continue;
        grown += end > pool.end();
        pool.set_end(end);
        REQUIRE(pool.check().empty());
        pool.choose_moves(moves);
        pool.move(moves);
        for (const page_move& m : moves)
          for (chain& all : chains) std::ranges::replace(all.pages, m.from, m.to);
        moved += moves.size();
      }
      if (random() % 3 == 0) evicted += pool.evict_leaving(static_cast<std::uint32_t>(random() % 5));
      INFO(check(pool) << pool.check());
      REQUIRE((check(pool).empty() && pool.check().empty()));
      for (const chain& all : chains) {
        page_name last = root_name("", "f32");
        for (const page_id p : all.pages) {
          last = name_of(last, pool.names().ids_of(p));
          REQUIRE(pool.names().find(last, pool.names().ids_of(p)) == p);
        }
      }
    }
    for (chain& c : chains) release(pool, c);
    pool.set_end(10);
    pool.evict_leaving(60);
    REQUIRE((pool.leaving() == 0 && pool.used() == 0 && pool.total() == 10));
    pool.forget_cached();
    REQUIRE(pool.free() == 10);
  }
  const unsigned least = weir::tests::rounds(40);
  CHECK(moved > least);
  CHECK(evicted > least);
  CHECK(grown > least);
}

TEST_CASE("random chains: what the tree finds is what a map of prefixes holds, and nothing is lost") {
  constexpr std::uint32_t total = 40;
  std::mt19937 random(drawn_seed(5));
  page_pool pool(total);
  std::map<std::vector<token_id>, page_id> known;  // a whole prefix -> the page at its end
  struct held {
    chain pages;
    std::vector<token_id> prefix;
  };
  std::vector<held> jobs;
  int hits = 0, misses = 0;
  std::set<std::uint64_t> seen;
  std::uint64_t changes = 0;
  for (int round = 0; round < 20000; ++round) {
    if (jobs.size() < 5 && random() % 3 == 0) jobs.emplace_back();
    if (jobs.empty()) continue;
    auto& j = jobs[random() % jobs.size()];
    if (j.prefix.size() < 8 && pool.available() > 0 && random() % 4 != 0) {
      auto prefix = j.prefix;
      prefix.push_back(static_cast<token_id>(random() % 3) * 1000);
      const bool there =
          pool.names().find(name_of(j.pages.last, ids_of(prefix.back())), ids_of(prefix.back())) != no_page;
      extend(pool, j.pages, prefix.back());
      if (there) {
        ++hits;
        REQUIRE(known.at(prefix) == j.pages.pages.back());
      } else {
        ++misses;
        std::erase_if(known, [&](const auto& k) { return k.second == j.pages.pages.back(); });
        REQUIRE_FALSE(known.contains(prefix));
        known[prefix] = j.pages.pages.back();
      }
      j.prefix = prefix;
    } else if (random() % 3 == 0) {
      release(pool, j.pages);
      std::swap(j, jobs.back());
      jobs.pop_back();
    }
    INFO("round " << round);
    std::set<page_id> used;
    for (const auto& each : jobs) used.insert(each.pages.pages.begin(), each.pages.pages.end());
    REQUIRE(used.size() == pool.used());
    REQUIRE(pool.used() + pool.cached() + pool.free() == total);
    REQUIRE(check(pool).empty());
    // The landmarks are the names of the prefixes of 1, 2, 4 and 8 pages, whether in use or not.
    std::set<std::uint64_t> landmarks, expected;
    for (const auto& l : pool.names().landmarks()) landmarks.insert(l.name);
    for (const auto& [prefix, page] : known)
      if (std::has_single_bit(prefix.size())) expected.insert(pool.names().name_of(page).hi);
    REQUIRE(landmarks == expected);
    REQUIRE(pool.names().landmarks().size() == expected.size());
    if (expected != seen) ++changes;
    seen = std::move(expected);
  }
  CHECK(changes > 1000);
  CHECK(pool.names().landmark_changes() >= changes);
  CHECK(hits > 1000);
  CHECK(misses > 1000);
}

}  // namespace weir::tests::prefix_tree_test
