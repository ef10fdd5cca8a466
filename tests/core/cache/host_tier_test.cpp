#include "core/cache/host_tier.h"

#include <map>
#include <random>

#include "tests/support/engine_rig.h"
#include "tests/support/seed.h"

namespace weir::tests::host_tier_test {

using namespace weir::core;

namespace {

using full = std::array<token_id, page_tokens>;

// Page `n` of one conversation: its ids and its name.
struct named_page {
  full ids;
  page_name name;
  explicit named_page(int n, std::string_view salt = {}) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<token_id>((static_cast<std::size_t>(n) * 7 + i) % 61);
    name = name_of(root_name(salt, "f32"), ids);
  }
};

// A toy whose page `p` holds `ids`.
void fill(toy_model& m, page_id p, const full& ids) { std::ranges::copy(ids, m.page_at(p).begin()); }
full read(toy_model& m, page_id p) {
  full ids;
  std::ranges::copy(m.page_at(p), ids.begin());
  return ids;
}

engine_config small_pool(std::uint32_t pages, std::uint32_t host) {
  auto c = small_config();
  c.kv_pages = pages;
  c.host_pages = host;
  return c;
}

}  // namespace

TEST_CASE("what is put away comes back once, as it was, and oldest pages leave first") {
  toy_model m;
  REQUIRE(m.allocate_pages(8).has_value());
  REQUIRE(m.allocate_host_pages(3).has_value());
  host_tier tier(m, 3);
  std::vector<named_page> pages;
  for (int n = 0; n < 5; ++n) pages.emplace_back(n);
  for (int n = 0; n < 5; ++n) {
    fill(m, 1, pages[static_cast<std::size_t>(n)].ids);
    tier.put(1, pages[static_cast<std::size_t>(n)].name, pages[static_cast<std::size_t>(n)].ids);
  }
  CHECK(tier.used() == 3);
  CHECK_FALSE(tier.holds(pages[0].name, pages[0].ids));
  CHECK_FALSE(tier.holds(pages[1].name, pages[1].ids));
  CHECK_FALSE(tier.take_back(pages[1].name, pages[1].ids, 2));
  for (const std::size_t n : {3u, 2u, 4u}) {
    fill(m, 2, full{});
    REQUIRE(tier.take_back(pages[n].name, pages[n].ids, 2));
    CHECK(read(m, 2) == pages[n].ids);
    CHECK_FALSE(tier.take_back(pages[n].name, pages[n].ids, 2));
  }
  CHECK(tier.used() == 0);
  CHECK(tier.restored() == 3);
}

TEST_CASE("a name with other tokens finds nothing, and a page that is here already is not copied again") {
  toy_model m;
  REQUIRE(m.allocate_pages(2).has_value());
  REQUIRE(m.allocate_host_pages(2).has_value());
  host_tier tier(m, 2);
  const named_page one(1), other(2);
  fill(m, 0, one.ids);
  tier.put(0, one.name, one.ids);
  CHECK_FALSE(tier.holds(one.name, other.ids));
  CHECK_FALSE(tier.holds(other.name, one.ids));
  tier.put(0, one.name, one.ids);
  CHECK(tier.used() == 1);
}

TEST_CASE("a copy that fails is no copy, and the next one may be") {
  toy_model m;
  REQUIRE(m.allocate_pages(2).has_value());
  REQUIRE(m.allocate_host_pages(2).has_value());
  host_tier tier(m, 2);
  const named_page one(1);
  fill(m, 0, one.ids);
  m.copies_fail = true;
  tier.put(0, one.name, one.ids);
  CHECK_FALSE(tier.holds(one.name, one.ids));
  CHECK(tier.used() == 0);
  m.copies_fail = false;
  tier.put(0, one.name, one.ids);
  REQUIRE(tier.holds(one.name, one.ids));
  m.copies_fail = true;
  CHECK_FALSE(tier.take_back(one.name, one.ids, 1));
  CHECK_FALSE(tier.holds(one.name, one.ids));
  CHECK(tier.used() == 0);
  CHECK(tier.restored() == 0);
}

TEST_CASE("random puts and takes are those of a list of the newest") {
  toy_model m;
  REQUIRE(m.allocate_pages(2).has_value());
  REQUIRE(m.allocate_host_pages(5).has_value());
  std::mt19937 random(drawn_seed(3));
  host_tier tier(m, 5);
  std::vector<named_page> all;
  for (int n = 0; n < 12; ++n) all.emplace_back(n);
  for (int i = 0; i < 5000; ++i) {
    const auto& p = all[random() % all.size()];
    if (random() % 3) {
      fill(m, 0, p.ids);
      tier.put(0, p.name, p.ids);
      REQUIRE(tier.holds(p.name, p.ids));
    } else {
      const bool there = tier.holds(p.name, p.ids);
      fill(m, 1, full{});
      REQUIRE(tier.take_back(p.name, p.ids, 1) == there);
      if (there) REQUIRE(read(m, 1) == p.ids);
    }
    std::uint32_t held = 0;
    for (const auto& each : all) held += tier.holds(each.name, each.ids);
    REQUIRE(held == tier.used());
    REQUIRE(held <= 5);
  }
}

TEST_CASE("with a host tier preempted jobs say the same, and most of what they had is not computed again") {
  std::map<std::uint32_t, std::uint64_t> computed;  // rows, by pages of the tier
  std::vector<std::vector<token_id>> said;
  for (const std::uint32_t host : {0u, 64u}) {
    engine_rig rig(small_pool(12, host));
    std::uint64_t rows = 0;
    rig.toy->before_forward = [&](const batch& b) -> result<void> {
      rows += b.tokens.size();
      return {};
    };
    std::vector<std::shared_ptr<recording_sink>> sinks;
    for (std::uint64_t n = 0; n < 8; ++n) sinks.push_back(rig.submit(rig.job(n, 300, 150 + n)));
    rig.run(1000000);
    const auto counts = rig.engine->counts();
    CHECK(counts.preemptions > 3);
    CHECK((counts.restored > 0) == (host > 0));
    CHECK(counts.host_total == host);
    computed[host] = rows;
    for (std::size_t n = 0; n < sinks.size(); ++n) {
      REQUIRE(sinks[n]->end->reason == finish_reason::length);
      if (host == 0) said.push_back(sinks[n]->ids());
      CHECK(sinks[n]->ids() == said[n]);
    }
  }
  CAPTURE(computed[0], computed[64]);
  CHECK(computed[64] < computed[0]);
}

TEST_CASE("random mixes with a host tier: the same tokens as without, and the books balance") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(drawn_seed(seed));
    engine_rig rig(small_pool(10 + seed % 12, 1 + seed % 40));
    engine_rig plain(small_pool(256, 0));
    std::vector<std::pair<job, std::shared_ptr<recording_sink>>> all;
    for (std::uint64_t n = 0; n < 30; ++n) {
      auto j = rig.job(n, 1 + random() % 200, 1);
      const auto kind = random() % 4;
      std::vector<token_id> text;
      for (std::size_t i = 0, tokens = 1 + random() % 300; i < tokens; ++i)
        text.push_back(static_cast<token_id>((kind * 5 + i * i) % 60));
      if (random() % 4 == 0) text.back() = static_cast<token_id>(n % 60);
      j.prompt = std::move(text);
      j.cache_salt = random() % 6 == 0 ? "own" : "";
      all.emplace_back(j, rig.submit(j));
      for (auto steps = random() % 40; steps > 0; --steps) rig.step();
      if (random() % 8 == 0) rig.engine->cancel(j.id);
    }
    rig.run(1000000);
    CAPTURE(seed);
    for (const auto& [j, sink] : all) {
      REQUIRE(sink->finishes == 1);
      const auto alone = plain.solo(j);
      const auto ids = sink->ids();
      REQUIRE(ids.size() <= alone.size());
      REQUIRE(std::equal(ids.begin(), ids.end(), alone.begin()));
    }
  }
}

}  // namespace weir::tests::host_tier_test
