#include "core/stop/repeats.h"

#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/engine_rig.h"
#include "tests/support/seed.h"

namespace weir::tests::repeats_test {

using namespace weir::core;

namespace {

std::vector<token> tokens_of(const std::vector<token_id>& ids) {
  std::vector<token> out;
  for (const auto id : ids) out.push_back({id, {}});
  return out;
}

// The definition: the text ends with some period's tokens, `times` times in a row.
bool loops(std::span<const token_id> said, std::size_t times) {
  for (std::size_t p = 1; p <= repeats::longest_period && p * times <= said.size(); ++p) {
    const auto end = said.last(p * times);
    bool same = true;
    for (std::size_t i = p; i < end.size(); ++i) same = same && end[i] == end[i - p];
    if (same) return true;
  }
  return false;
}

// How many tokens there were when the loop was noticed; nullopt: it was not.
std::optional<std::size_t> noticed(const std::vector<token_id>& ids, std::uint32_t times) {
  repeats watch(times);
  const auto all = tokens_of(ids);
  for (std::size_t n = 1; n <= all.size(); ++n)
    if (watch.feed(std::span(all).first(n))) return n;
  return std::nullopt;
}

std::vector<token_id> over_and_over(const std::vector<token_id>& what, std::size_t times) {
  std::vector<token_id> out;
  for (std::size_t i = 0; i < times; ++i) out.insert(out.end(), what.begin(), what.end());
  return out;
}

std::vector<token_id> rising(std::size_t n) {
  std::vector<token_id> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(static_cast<token_id>(i));
  return out;
}

}  // namespace

TEST_CASE("repeats: a loop is noticed at the token that completes it, and not before") {
  for (const std::size_t period : {1, 2, 3, 63, 64})
    for (const std::uint32_t times : {2u, 3u, 10u}) {
      CAPTURE(period, times);
      CHECK(noticed(over_and_over(rising(period), times), times) == period * times);
      auto late = over_and_over({900, 901, 902}, 1);
      const auto loop = over_and_over(rising(period), times);
      late.insert(late.end(), loop.begin(), loop.end());
      CHECK(noticed(late, times) == 3 + period * times);
    }
}

TEST_CASE("repeats: what is nearly a loop is none") {
  CHECK_FALSE(noticed(over_and_over(rising(65), 6), 3));  // longer than any period that is looked at
  CHECK_FALSE(noticed(over_and_over(rising(8), 4), 5));
  auto broken = over_and_over(rising(8), 9);
  for (std::size_t i = 20; i < broken.size(); i += 32) broken[i] = 77;  // one word changes every fourth time
  CHECK_FALSE(noticed(broken, 5));
  CHECK_FALSE(noticed({1}, 2));
  CHECK_FALSE(noticed({1, 2, 1}, 2));
  CHECK(noticed({1, 2, 1, 2}, 2) == 4u);
}

TEST_CASE("repeats: random sequences are judged as by the definition") {
  std::mt19937 random(drawn_seed(5));
  int loops_found = 0;
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t times = 2 + random() % 5;
    const token_id words = 1 + static_cast<token_id>(random() % 3);
    std::vector<token_id> said;
    while (said.size() < 260) {
      if (random() % 4 == 0 && said.size() > 2) {  // repeats the latest tokens
        const std::size_t p = 1 + random() % std::min<std::size_t>(said.size(), 70);
        for (std::size_t i = 0, n = p * (1 + random() % 3); i < n; ++i) said.push_back(said[said.size() - p]);
      }
      said.push_back(static_cast<token_id>(random() % static_cast<unsigned>(words + 1)) +
                     10 * static_cast<token_id>(random() % 2));
    }
    repeats watch(times);
    const auto all = tokens_of(said);
    for (std::size_t n = 1; n <= all.size(); ++n) {
      const bool is = loops(std::span(said).first(n), times);
      loops_found += is ? 1 : 0;
      REQUIRE(watch.feed(std::span(all).first(n)) == is);
    }
  }
  CHECK(loops_found > 1000);
}

TEST_CASE("a job that asked ends with repetition in the middle of its loop, and others go on") {
  engine_rig rig;
  rig.toy->script = [](std::uint64_t, std::uint32_t i) {
    return i < 7 ? static_cast<token_id>(20 + i) : static_cast<token_id>(i % 3);
  };
  auto asks = rig.job(1, 100);
  asks.max_repeats = 4;
  const auto a = rig.submit(asks), b = rig.submit(rig.job(2, 100));
  rig.run();
  CHECK(a->end->reason == finish_reason::repetition);
  CHECK(a->tokens.size() == 7 + 4 * 3);
  CHECK(a->end->output_tokens == 7 + 4 * 3);
  CHECK(b->end->reason == finish_reason::length);
  CHECK(b->tokens.size() == 100);
  CHECK(std::equal(a->tokens.begin(), a->tokens.end(), b->tokens.begin(),
                   [](const auto& x, const auto& y) { return x.id == y.id; }));
}

TEST_CASE("a loop does not end a job before min_tokens, and a stop that comes with it is a stop") {
  engine_rig rig;
  rig.toy->script = [](std::uint64_t seed, std::uint32_t i) {
    return static_cast<token_id>(seed == 2 && i == 9 ? 7 : 3);
  };
  auto patient = rig.job(1, 100);
  patient.max_repeats = 4;
  patient.min_tokens = 30;
  auto stopped = rig.job(2, 100);
  stopped.max_repeats = 20;
  stopped.stop_token_ids = {7};
  const auto a = rig.submit(patient), b = rig.submit(stopped);
  rig.run();
  CHECK(a->end->reason == finish_reason::repetition);
  CHECK(a->tokens.size() == 30);
  CHECK(b->end->reason == finish_reason::stop);
  CHECK(b->tokens.size() == 9);
}

TEST_CASE("who asks for it and does not loop gets the tokens of who does not ask, preempted or not") {
  auto c = small_config();
  c.kv_pages = 8;
  engine_rig rig(c);
  std::vector<std::shared_ptr<recording_sink>> sinks;
  for (std::uint64_t n = 0; n < 6; ++n) {
    auto j = rig.job(n, 250, 40 + n);
    j.max_repeats = 50;
    sinks.push_back(rig.submit(j));
  }
  rig.run(1000000);
  CHECK(rig.engine->counts().preemptions > 2);
  for (std::uint64_t n = 0; n < 6; ++n) {
    CHECK(sinks[n]->end->reason == finish_reason::length);
    CHECK(sinks[n]->ids() == engine_rig().solo(rig.job(n, 250, 40 + n)));
  }
}

}  // namespace weir::tests::repeats_test
