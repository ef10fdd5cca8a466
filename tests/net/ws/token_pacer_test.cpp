// Pace "even": when tokens may be sent, in virtual time.
#include "net/ws/token_pacer.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

namespace weir::tests::token_pacer_test {

using net::token_pacer;

namespace {

constexpr std::int64_t ms = 1000;

void sample(actors::token_log& log, std::int64_t at_us) {
  log.text() += "x";
  log.append(1, at_us, true);
}

double spread(const std::vector<std::int64_t>& times) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back(static_cast<double>(times[i] - times[i - 1]));
  double mean = 0, square = 0;
  for (const double g : gaps) mean += g / static_cast<double>(gaps.size());
  for (const double g : gaps) square += (g - mean) * (g - mean) / static_cast<double>(gaps.size());
  return std::sqrt(square) / mean;
}

}  // namespace

TEST_CASE("token_pacer: a bursty source is played evenly, the first at once and none over 250 ms late") {
  std::mt19937 random(11);
  std::vector<std::int64_t> sampled;
  std::size_t next_stall = 50;
  for (std::int64_t at = 5 * ms; sampled.size() < 600; at += 45 * ms) {
    if (sampled.size() >= next_stall) {
      at += 150 * ms;
      next_stall += 50;
    }
    for (auto n = 1 + random() % 5; n > 0; --n) sampled.push_back(at);
  }
  actors::token_log log;
  token_pacer pacer(0);
  std::vector<std::int64_t> sent;
  for (std::int64_t now = 0; sent.size() < sampled.size(); now += ms) {
    while (log.size() < sampled.size() && sampled[log.size()] <= now) sample(log, sampled[log.size()]);
    while (sent.size() < pacer.due(log, 0, now)) sent.push_back(now);
  }
  CHECK(sent.front() == sampled.front());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    REQUIRE(sent[i] >= sampled[i]);
    REQUIRE(sent[i] <= sampled[i] + token_pacer::longest_delay_us + ms);
  }
  CHECK(spread(sent) < spread(sampled) / 3);
}

TEST_CASE("token_pacer: it says when the next token is due, and that is when it comes") {
  actors::token_log log;
  token_pacer pacer(0);
  for (const std::int64_t at : {0, 0, 0, 0, 100, 120, 120, 120}) sample(log, at * ms);
  std::int64_t now = 120 * ms;
  std::uint32_t sent = pacer.due(log, 0, now);
  CHECK(sent >= 1);
  CHECK(sent < 8);
  while (sent < 8) {
    REQUIRE(pacer.next_due());
    const auto next = *pacer.next_due();
    CHECK(next > now);
    CHECK(pacer.due(log, 0, next - 1) == sent);
    CHECK(pacer.due(log, 0, next) == ++sent);
    now = next;
  }
  CHECK_FALSE(pacer.next_due());
}

TEST_CASE("token_pacer: what a resumed lane has missed is due at once") {
  actors::token_log all, later;
  for (int i = 0; i < 100; ++i) sample(all, i * 20 * ms);
  later.append_part(all, 40, 100);
  token_pacer pacer(40);
  CHECK(pacer.due(later, 40, 10'000 * ms) == 100);
}

TEST_CASE("token_pacer: tokens that went out before they were due, for their character's sake, are due") {
  actors::token_log log;
  log.append(1, 0, false);  // the first half of a character
  log.text() += "é";
  log.append(2, 400 * ms, true);
  token_pacer p(0);
  CHECK(p.due(log, 0, 0) == 1);
  CHECK(log.whole_part(0, 1) == 2);  // a piece has a whole character at least
  p.sent(2);
  CHECK(p.due(log, 0, 0) == 2);
  CHECK(p.due(actors::token_log(), 2, 0) == 2);  // what was sent is given back
}

}  // namespace weir::tests::token_pacer_test
