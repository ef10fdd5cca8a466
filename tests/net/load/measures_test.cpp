// Every measure against values worked out by hand.
#include "net/load/measures.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace weir::tests::measures_test {

using namespace weir::load;

namespace {

// Frames of one token each at these times in ms, of a request scheduled at 0.
stream_record stream_at(std::initializer_list<double> times, ending how = ending::completed) {
  stream_record r;
  r.how = how;
  for (double t : times) r.take(static_cast<micros>(t * 1000), 1);
  if (!r.frames.empty()) r.ended = r.frames.back().at;
  return r;
}

// n tokens from `first` ms on, every `every` ms.
stream_record steady(int n, double first, double every) {
  stream_record r;
  r.how = ending::completed;
  for (int i = 0; i < n; ++i) r.take(static_cast<micros>((first + i * every) * 1000), 1);
  r.ended = r.frames.back().at;
  return r;
}

}  // namespace

TEST_CASE("TTFT, TPOT, ITL and E2EL are vLLM's, from the scheduled start") {
  auto r = stream_at({150, 170, 200, 260});
  r.scheduled = 50'000;
  r.sent = 90'000;  // the harness was late: that does not shorten the latency
  const auto m = measure(r);
  CHECK(*m.ttft == Approx(100));
  CHECK(*m.e2el == Approx(210));
  CHECK(*m.tpot == Approx((210.0 - 100.0) / 3));
  CHECK(m.gaps == std::vector<double>{20, 30, 60});
  r.output_tokens = 12;  // the server says that a frame was more than a token
  CHECK(*measure(r).tpot == Approx(110.0 / 11));
}

TEST_CASE("a stream that did not complete has a first token and gaps, but no TPOT and no E2EL") {
  const auto m = measure(stream_at({100, 120}, ending::cut));
  CHECK(*m.ttft == Approx(100));
  CHECK(!m.e2el);
  CHECK(!m.tpot);
  CHECK(m.gaps.size() == 1);
  CHECK(!measure(stream_at({}, ending::failed)).ttft);
}

TEST_CASE("gap_cv is the population's standard deviation over the mean") {
  // gaps 10 20 30: mean 20, deviation sqrt(200/3)
  const auto m = measure(stream_at({0, 10, 30, 60}));
  CHECK(*m.gap_cv == Approx(std::sqrt(200.0 / 3) / 20));
  CHECK(*m.gap_max == 30);
  CHECK(*m.gap_p99_over_p50 == Approx(30.0 / 20));
  CHECK(*measure(steady(50, 10, 20)).gap_cv == Approx(0).margin(1e-9));
}

TEST_CASE("a stall is a gap over the larger of 200 ms and five medians") {
  auto r = steady(11, 0, 20);
  r.take(200'000 + 300'000, 1);  // 300 ms after the last
  r.take(520'000, 1);
  auto m = measure(r);
  CHECK(m.stall_threshold == 200);
  CHECK(m.stalls == 1);
  CHECK(*m.stall_ratio == Approx(100.0 / 520));
  // At 60 ms a token the threshold is 300: a gap of 299 is none.
  auto slow = steady(11, 0, 60);
  slow.take(600'000 + 299'000, 1);
  m = measure(slow);
  CHECK(m.stall_threshold == 300);
  CHECK(m.stalls == 0);
  CHECK(*m.stall_ratio == 0);
}

TEST_CASE("a stall that the sampling times show too is the source's") {
  stream_record r;
  micros at = 0, t = 5'000;
  for (int i = 0; i < 10; ++i, at += 20'000, t += 20'000) r.take(at, 1, {}, t);
  at += 400'000;
  t += 400'000;  // sampled late
  r.take(at, 1, {}, t);
  at += 400'000;
  t += 20'000;   // sampled in time, delivered late
  r.take(at, 1, {}, t);
  const auto m = measure(r);
  CHECK(m.stalls == 2);
  CHECK(m.source_stalls == 1);
}

TEST_CASE("coalesced counts every token of a merged frame, and those within 2 ms of the one before") {
  stream_record r;
  r.take(0, 1);
  r.take(20'000, 4);
  r.take(40'000, 1);
  r.take(41'000, 1);  // 1 ms later
  r.take(60'000, 1);
  const auto m = measure(r);
  CHECK(m.tokens == 8);
  CHECK(m.coalesced == 5);
  CHECK(m.largest_burst == 4);
}

TEST_CASE("tokens that trickle in together are one burst") {
  stream_record r;
  for (int i = 0; i < 3; ++i) r.take(i * 20'000, 1);
  for (int i = 0; i < 16; ++i) r.take(60'000 + i * 100, 1);
  CHECK(measure(r).largest_burst == 16);
}

TEST_CASE("on schedule: at most 50 ms behind the stream's own mean rate") {
  // 11 tokens over 1,000 ms: a line of 100 ms a token. Tokens 1 to 9 lie 60 ms behind it.
  stream_record r;
  r.take(0, 1);
  for (int i = 1; i <= 9; ++i) r.take(i * 100'000 + 60'000, 1);
  r.take(1'000'000, 1);
  CHECK(measure(r).on_schedule == 2);
  CHECK(measure(steady(11, 0, 100)).on_schedule == 11);
}

TEST_CASE("fluidity banks what came early and counts each deadline that passed") {
  const std::vector<double> even(10, 20);
  CHECK(fluidity(even, 30) == 1);
  // D = 30: 20 (slack 10), 20 (20), 40 (10), then 100: misses floor((100 − 10 − 30) / 30) + 1 = 3
  const std::vector<double> gaps{20, 20, 40, 100};
  CHECK(fluidity(gaps, 30) == Approx(3.0 / 6));
}

TEST_CASE("QoE: the reader waits a second and reads ten a second") {
  // In time for the reader: perfect, however they came.
  CHECK(quality_of_experience(steady(20, 500, 1).frames, 0) == Approx(1));
  // Two tokens, at 2 s and at once after it: read at 2,000 and 2,100; ideal 1,000 and 1,100.
  CHECK(quality_of_experience(stream_at({2000, 2000}).frames, 0) == Approx(1 - 2000.0 / 4100));
}

TEST_CASE("added jitter is delivery's part alone, without a common clock") {
  stream_record r;
  r.take(1'020'000, 1, {}, 5'000);    // 1,015 apart
  r.take(1'043'000, 1, {}, 25'000);   // 1,018
  r.take(1'330'000, 1, {}, 315'000);  // 1,015: late, but sampled late
  const auto m = measure(r);
  REQUIRE(m.added_jitter.size() == 3);
  CHECK(m.added_jitter[0] == Approx(0).margin(1e-9));
  CHECK(m.added_jitter[1] == Approx(3));
  CHECK(m.added_jitter[2] == Approx(0).margin(1e-9));
}

TEST_CASE("seq proves what was lost and what came twice") {
  stream_record r;
  r.take(0, 1, 1);
  r.take(1, 2, 3);
  r.take(2, 1, 5);  // 4 is missing
  r.take(3, 1, 5);  // again
  r.take(4, 3, 7);  // 5 again, 6 and 7 new
  CHECK(r.gaps == 1);
  CHECK(r.repeats == 2);
  CHECK(r.tokens == 6);
  r.claim(9);
  CHECK(r.gaps == 3);
}

TEST_CASE("frames of the warm-up are left out, and so is a first token that was scheduled in it") {
  auto r = steady(10, 100, 20);  // 100 … 280
  r.scheduled = 0;
  const auto m = measure(r, 190'000);
  CHECK(!m.ttft);
  CHECK(!m.e2el);
  CHECK(m.tokens == 5);
  CHECK(m.gaps.size() == 4);
}

TEST_CASE("quantiles of a list are nearest rank") {
  CHECK(quantile({3, 1, 2}, 0.5) == 2);
  CHECK(quantile({4, 3, 1, 2}, 0.5) == 2);
  CHECK(quantile({1}, 0.99) == 1);
  CHECK(quantile({}, 0.5) == 0);
}

}  // namespace weir::tests::measures_test
