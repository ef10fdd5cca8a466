// The budget over simulated devices: what it grants, and over random days that streams keep tpot, that
// prompts move on and that first tokens come in time where they can.
#include "core/schedule/prompt_budget.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <random>

namespace weir::tests::prompt_budget_objective_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

struct device {
  double step = 4e6, stream = 30e3, prompt = 20e3;  // ns: a step, a row of a stream, a prompt row
  double free_rows = 0;                             // rows that the step's own time holds
  double of(double streams, double prompts) const {
    return step + stream * streams + prompt * std::max(0.0, prompts - free_rows);
  }
};

duration as_time(double ns) { return duration(static_cast<std::int64_t>(ns)); }

constexpr prompt_budget::targets usual{.rows = 2048, .slo = {1000ms, 50ms}};

// A budget that has measured this device with `streams` streams.
prompt_budget taught(const device& d, prompt_budget::targets l, std::uint32_t streams) {
  prompt_budget b(l);
  for (std::uint32_t rows = 64; rows <= 2048; rows *= 2)
    for (const std::uint32_t r : {0u, rows}) b.observe(streams, r, as_time(d.of(streams, r)));
  for (int i = 0; i < 60; ++i) b.observe(streams, 0, as_time(d.of(streams, 0)));
  return b;
}

const std::vector<prompt_demand> no_hurry(4, {5000, 60s});

}  // namespace

TEST_CASE("an objective: before anything was measured a slice is short, and slices at most double") {
  prompt_budget b(usual);
  const device d;
  std::uint32_t widest = 0;
  CHECK(b.rows(8, no_hurry) == 64);
  for (int i = 0; i < 20; ++i) {
    const auto rows = b.rows(8, no_hurry);
    CHECK(rows <= std::max(64u, 2 * widest));
    widest = std::max(widest, rows);
    b.observe(8, rows, as_time(d.of(8, rows)));
  }
  CHECK(b.rows(8, no_hurry) > 1500);
}

TEST_CASE("an objective: a step takes as many prompt rows as keep tpot") {
  const device d;
  for (const std::uint32_t streams : {1u, 32u, 256u}) {
    for (const duration tpot : {20ms, 35ms, 50ms}) {
      auto b = taught(d, {.rows = 2048, .slo = {1000ms, tpot}}, streams);
      const auto rows = b.rows(streams, no_hurry);
      CAPTURE(streams, tpot.count(), rows);
      CHECK(d.of(streams, rows) <= static_cast<double>(tpot.count()));
      CHECK((rows == 2048 || d.of(streams, rows) >= 0.85 * static_cast<double>(tpot.count())));
      CHECK(b.granted() == rows);
    }
  }
}

TEST_CASE("an objective: a prompt that would be late makes steps longer, and one that is late does not") {
  const device d;
  const prompt_budget::targets tight{.rows = 2048, .slo = {1000ms, 20ms}};
  auto b = taught(d, tight, 32);  // 4.96 ms without prompts
  const auto calm = b.rows(32, no_hurry);
  // Steps of tpot have 14 of 19 ms for prompts, 700 rows: 7,000 in 200 ms. Twice as long steps make 9,000.
  const std::vector<prompt_demand> easy{{4000, 200ms}}, urgent{{8000, 200ms}}, late{{8000, -1ms}},
      hopeless{{20000, 200ms}}, behind{{4000, -1ms}, {4000, 200ms}};
  CHECK(b.rows(32, easy) == calm);
  CHECK(b.rows(32, urgent) > calm * 5 / 4);
  CHECK(d.of(32, b.rows(32, urgent)) <= 40e6);
  CHECK(b.rows(32, late) == calm);
  CHECK(b.rows(32, hopeless) == calm);
  CHECK(b.rows(32, behind) == b.rows(32, urgent));                // earlier prompts' rows count, too
  CHECK(b.rows(32, std::vector<prompt_demand>{{8000}}) == calm);  // its first token was sampled already
}

TEST_CASE("an objective: tpot wins once the streams are no more ahead") {
  const device d;
  auto b = taught(d, {.rows = 2048, .slo = {1000ms, 20ms}}, 32);
  const std::vector<prompt_demand> urgent{{8000, 200ms}};
  double all = 0;
  int longer = 0;
  for (int i = 0; i < 200; ++i) {
    const auto took = d.of(32, b.rows(32, urgent));  // urgent prompts in every step
    all += took;
    longer += took > 20e6;
    b.observe(32, b.granted(), as_time(took));
  }
  CHECK(longer > 0);
  CHECK(longer < 40);
  CHECK(all / 200 <= 20e6 * (1 + 4.0 / 200));
  CHECK(d.of(32, b.rows(32, urgent)) <= 20e6);
}

TEST_CASE("an objective: where streams alone miss tpot, prompts still move on") {
  const device d;
  auto b = taught(d, {.rows = 2048, .slo = {1000ms, 5ms}}, 256);  // 11.7 ms
  const auto rows = b.rows(256, no_hurry);
  CHECK(rows >= 16);
  CHECK(d.of(256, rows) <= 1.3 * d.of(256, 0));
  CHECK(d.of(256, rows) >= 1.2 * d.of(256, 0));
}

TEST_CASE("an objective: the longest step with a slice is kept, whatever first tokens need") {
  const device d;
  auto b = taught(d, {.rows = 2048, .while_decoding = 15ms, .slo = {1000ms, 50ms}}, 32);
  const std::vector<prompt_demand> urgent{{8000, 200ms}};
  CHECK(d.of(32, b.rows(32, urgent)) <= 15e6);
  CHECK(d.of(32, b.rows(32, urgent)) >= 12e6);
}

namespace {

// A day of one server: prompts arrive at random, are computed in order, and become streams, which end.
struct day {
  explicit day(std::uint32_t seed) : random(seed) {}

  std::mt19937 random;
  double between(double low, double high) { return std::uniform_real_distribution(low, high)(random); }

  struct one {
    double asked, first = -1;
    std::uint32_t left, tokens;
  };
  std::deque<one> prompts;
  std::vector<one> streams;
  std::uint32_t steps = 0, over = 0, far_over = 0, kept = 0, first_kept = 0, ended = 0, stuck = 0;

  // `load`: rows of arriving prompts, as a share of the rows that steps of tpot have room for.
  void run(const device& d, prompt_budget& b, const objective& slo, double noise, double load) {
    const double tpot = static_cast<double>(slo.tpot.count()), ttft = static_cast<double>(slo.ttft.count());
    double now = 0, owed = 0;
    for (; steps < 3000; ++steps) {
      const auto n = static_cast<std::uint32_t>(streams.size());
      // Prompts that arrived during the last step. `owed`: their rows.
      while (owed > 0) {
        const auto rows = 16 + random() % 1000;
        prompts.push_back(
            {now, -1, static_cast<std::uint32_t>(rows), 20 + static_cast<std::uint32_t>(random() % 60)});
        owed -= static_cast<double>(rows);
      }
      std::vector<prompt_demand> waiting;
      for (const one& p : prompts) waiting.push_back({p.left, as_time(p.asked + ttft - now)});
      std::uint32_t rows = 0;
      if (!prompts.empty()) rows = n > 0 ? b.rows(n, waiting) : 512;
      if (n > 0 && !prompts.empty() && rows == 0) ++stuck;
      std::uint32_t used = 0;
      std::vector<one> begun;
      while (used < rows && !prompts.empty()) {
        const auto now_rows = std::min(rows - used, prompts.front().left);
        used += now_rows;
        if ((prompts.front().left -= now_rows) > 0) break;
        begun.push_back(prompts.front());
        prompts.pop_front();
      }
      const double took = d.of(n, used) * (1 + noise * between(-1, 1));
      now += took;
      if (n > 0 || used > 0) b.observe(n, used, as_time(took));
      if (n > 0 && used > 0 && steps > 50) {
        const double most = std::max(tpot, 1.25 * d.of(n, 0));
        over += took > most * (1 + noise);
        far_over += took > 2 * most * (1 + noise);
      }
      for (one& s : streams) --s.tokens;
      std::erase_if(streams, [&](const one& s) {
        if (s.tokens > 0) return false;
        ++ended;
        first_kept += s.first - s.asked <= ttft;
        return true;
      });
      for (one& s : begun) {
        s.first = now;
        streams.push_back(s);
      }
      const double room = std::max(0.0, (tpot - d.of(n, 0)) / d.prompt);
      owed += load * room * took / tpot * between(0, 2);
      if (n == 0 && prompts.empty()) owed += 1;
    }
  }
};

}  // namespace

TEST_CASE("an objective: over random days streams keep tpot, and prompts their ttft where there is room") {
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    day today(seed);
    const device d{today.between(1e6, 10e6), today.between(1e3, 3e4), today.between(5e3, 1e5),
                   seed % 3 == 0 ? today.between(0, 100) : 0.0};
    const double noise = seed % 2 ? 0.05 : 0;
    const objective slo{2000ms, as_time(today.between(3, 6) * d.of(64, 0))};
    prompt_budget b({.rows = 2048, .slo = slo});
    const double load = seed % 5 == 4 ? 3 : 0.4;
    today.run(d, b, slo, noise, load);
    CAPTURE(seed, load, d.step, d.stream, d.prompt, d.free_rows, slo.tpot.count());
    CAPTURE(today.over, today.far_over, today.ended, today.first_kept);
    CHECK(today.stuck == 0);
    CHECK(today.ended > 50);
    CHECK(today.far_over <= 6);
    CHECK(today.over <= 150);  // of 3,000 steps
    if (load < 1) CHECK(today.first_kept >= today.ended * 19 / 20);
  }
}

}  // namespace weir::tests::prompt_budget_objective_test
