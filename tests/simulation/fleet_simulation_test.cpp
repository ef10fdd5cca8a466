// A short edition of tests/bench/fleet: that the simulation runs, and what choosing by caches is worth there.
// The long one has the published traces and the targets of docs/fleet.md.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>

#include "tests/bench/fleet/cell.h"
#include "tests/support/seed.h"

namespace weir::tests::fleet_simulation_test {

using namespace bench::fleet;

namespace {

// Conversations of eight turns. Each turn's prompt is that of the turn before and two blocks more; all begin
// with the same block.
trace conversations(std::uint64_t seed) {
  constexpr std::uint32_t count = 800, turns = 8;
  std::mt19937_64 random(seed);
  struct turn {
    double at_s;
    std::uint32_t conversation, number;
  };
  std::vector<turn> all;
  for (std::uint32_t c = 0; c < count; ++c) {
    const double from = static_cast<double>(random() % 6000) / 10;
    for (std::uint32_t n = 0; n < turns; ++n)
      all.push_back({from + 15.0 * n + static_cast<double>(random() % 1000) / 100, c, n});
  }
  std::ranges::sort(all, {}, &turn::at_s);
  trace t;
  t.name = "conversations";
  for (const auto& x : all) {
    std::vector<std::uint32_t> blocks{0};
    const std::uint32_t size = 3 + 2 * x.number;
    for (std::uint32_t i = 0; i < size; ++i) blocks.push_back(1 + x.conversation * 2 * (turns + 2) + i);
    add(t, x.at_s, (size + 1) * trace::block_tokens - static_cast<std::uint32_t>(random() % 100), 64, blocks);
  }
  REQUIRE(complete(t).has_value());
  return t;
}

figures live(const trace& t, const char* policy, cell_settings s) {
  s.policy = policy;
  auto out = cell::live(t, s);
  REQUIRE(out.has_value());
  return std::move(*out);
}

double found(const figures& f) { return f.found / f.prompt_tokens; }

}  // namespace

TEST_CASE("fleet simulation: the map of landmarks says what the lists say") {
  std::mt19937_64 random(drawn_seed(1));
  constexpr std::uint32_t devices = 20;
  landmark_map map;
  std::vector<core::fleet::known_landmarks> lists(devices);
  for (int round = 0; round < 200; ++round) {
    const auto d = static_cast<std::uint32_t>(random() % devices);
    core::fleet::landmark_list next;
    for (std::uint64_t name = 0; name < 40; ++name)
      if (random() % 3 == 0) next.push_back(name);
    auto news = core::fleet::change_of(lists[d].all, next);
    news.before = lists[d].number, news.now = news.before + 1;
    REQUIRE(lists[d].take(news));
    map.take(d, news);
    std::vector<std::uint64_t> names(random() % 9);
    for (auto& name : names) name = random() % 50;
    std::vector<core::place_load> seen(devices);
    const auto most = static_cast<std::uint32_t>(random() % 20'000);
    map.look(names, most, seen);
    for (std::uint32_t i = 0; i < devices; ++i)
      REQUIRE(seen[i].known == std::min(most, core::fleet::known_tokens(names, lists[i].all)));
  }
}

TEST_CASE("fleet simulation: pick finds far more of the prompts than chance does, and sooner") {
  const auto t = conversations(drawn_seed(2));
  cell_settings s;
  s.devices = 16, s.gateways = 3;
  s.seconds = 150, s.warm_up_s = 60;
  s.requests_per_s = 0.6 * capacity_of(t, s.each) * s.devices;
  s.seed = drawn_seed(3);
  auto weir = live(t, "weir", s), chance = live(t, "random", s);
  CHECK(weir.requests > 1000);
  CHECK(weir.requests == chance.requests);
  for (const auto* f : {&weir, &chance}) {
    CHECK(f->refused == 0);
    CHECK(f->ended <= f->requests);
    CHECK(f->ended > f->requests * 8 / 10);  // the others are on their way when the day ends
    CHECK(f->found <= f->prompt_tokens);
  }
  // Of a conversation's turns some 80 % are repeated; one of 16 devices has them.
  CHECK(found(weir) > found(chance) + 0.15);
  CHECK(quantile(weir.first_ms, 0.5) < quantile(chance.first_ms, 0.5));
  const auto again = live(t, "weir", s);  // nothing but the seed decides
  CHECK(again.found == weir.found);
  CHECK(again.first_ms.size() == weir.first_ms.size());
}

TEST_CASE("fleet simulation: what there is not is refused by name") {
  const auto t = conversations(1);
  cell_settings s;
  s.devices = 2, s.requests_per_s = 1;
  s.policy = "luck";
  CHECK(cell::live(t, s).error().param == "policy");
  s.policy = "weir", s.devices = 129;
  CHECK(cell::live(t, s).error().param == "devices");
}

TEST_CASE("fleet simulation: the published traces, with the targets", "[long]") {
  const char* data = std::getenv("TEST_DATA_DIR");
  if (!data) {
    WARN("without TEST_DATA_DIR there are no traces");
    return;
  }
  cell_settings s;
  s.devices = 125, s.gateways = 12, s.seconds = 1200, s.warm_up_s = 600;
  const auto folder = std::string(data) + "/traces/";
  const auto mooncake = read_trace(folder + "mooncake_conversation_trace.jsonl");
  REQUIRE(mooncake.has_value());
  s.requests_per_s = 0.7 * capacity_of(*mooncake, s.each) * s.devices;
  auto weir = live(*mooncake, "weir", s), least = live(*mooncake, "least-loaded", s);
  CHECK(found(weir) >= 0.9 * found(live(*mooncake, "oracle", s)));
  CHECK(quantile(weir.first_ms, 0.99) <= 0.75 * quantile(least.first_ms, 0.99));
  CHECK(busiest(weir.tokens) <= 1.25);
  const auto azure = read_trace(folder + "AzureLLMInferenceTrace_conv.csv");
  REQUIRE(azure.has_value());
  s.seconds = 300, s.warm_up_s = 120;
  s.requests_per_s = 0.7 * capacity_of(*azure, s.each) * s.devices;
  weir = live(*azure, "weir", s), least = live(*azure, "least-loaded", s);
  CHECK(quantile(weir.first_ms, 0.99) <= 1.05 * quantile(least.first_ms, 0.99));
}

}  // namespace weir::tests::fleet_simulation_test
