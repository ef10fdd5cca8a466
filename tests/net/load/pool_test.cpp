#include "net/load/pool.h"

#include <catch2/catch.hpp>

namespace weir::tests::pool_test {

using namespace weir::load;

namespace {

stream_record steady(std::uint64_t index, int n, double first, double every) {
  stream_record r;
  r.index = index;
  r.how = ending::completed;
  for (int i = 0; i < n; ++i) r.take(static_cast<micros>((first + i * every) * 1000), 1, i + 1);
  r.ended = r.frames.back().at;
  return r;
}

pool with(std::initializer_list<stream_record> streams, pool_options o = {}) {
  pool p(o);
  for (const auto& r : streams) p.add(r);
  p.conclude(10);
  return p;
}

}  // namespace

TEST_CASE("a clean run has nothing found, and its sums are the sums of its streams") {
  const auto p = with({steady(0, 51, 100, 20), steady(1, 51, 110, 20), steady(2, 51, 90, 20)});
  CHECK(p.found().empty());
  CHECK(p.number(figure::output_tokens) == 153);
  CHECK(p.number(figure::frames) == 153);
  CHECK(p.number(figure::completed) == 3);
  CHECK(p.number(figure::output_throughput) == Approx(15.3));
  CHECK(p.number(figure::request_throughput) == Approx(0.3));
  CHECK(*p.value("ttft_ms", "p50") == Approx(100).epsilon(0.001));  // as fine as a histogram is
  CHECK(*p.value("ttft_ms", "max") == 110);
  CHECK(*p.value("itl_ms", "p99") == Approx(20).epsilon(0.001));
  CHECK(*p.value("tpot_ms", "mean") == Approx(20));
  CHECK(*p.value("coalesced_frac") == 0);
  CHECK(*p.value("on_schedule_frac") == 1);
  CHECK(p.of(figure::itl_per_token_ms).count() == 150);
  CHECK(!p.value("added_jitter_ms", "p99"));  // nothing said when it was sampled
}

TEST_CASE("what a paced client shows is reported of each stream, and of all frames together") {
  auto r = steady(1, 20, 100, 20);
  for (int i = 0; i < 16; ++i) r.take(600'000, 1, 21 + i);
  const auto p = with({steady(0, 51, 100, 20), r});
  CHECK(p.of(figure::shown_gap_cv).count() == 2);
  CHECK(p.of(figure::shown_delay_mean_ms).count() == 2);
  CHECK(p.of(figure::shown_delay_ms).count() == 51 + 36);
  CHECK(p.of(figure::shown_gap_cv).max() < p.of(figure::gap_cv).max());
  CHECK(p.of(figure::shown_delay_ms).max() <= 250);
  CHECK(p.of(figure::shown_delay_max_ms).max() == p.of(figure::shown_delay_ms).max());
}

TEST_CASE("goodput counts completed requests that met every objective") {
  pool_options o;
  o.slo.ttft = 105;
  o.slo.tpot = 20.5;
  const auto p = with({steady(0, 51, 100, 20), steady(1, 51, 110, 20), steady(2, 51, 100, 21)}, o);
  CHECK(p.number(figure::request_goodput) == Approx(0.1));
}

TEST_CASE("each fault is found by its name, with its stream") {
  auto burst = steady(1, 20, 100, 20);
  for (int i = 0; i < 16; ++i) burst.take(600'000, 1, 21 + i);
  auto lost = steady(2, 20, 100, 20);
  lost.take(520'000, 1, 22);
  auto twice = steady(3, 20, 100, 20);
  twice.take(500'000, 1, 20);
  auto stall = steady(4, 20, 100, 20);
  stall.take(480'000 + 300'000, 1, 21);
  const auto late = steady(5, 20, 900, 20);
  for (const auto& [r, name] : {std::pair{burst, "burst"}, {lost, "lost token"}, {twice, "repeated token"},
                                {stall, "stall"}, {late, "late first token"}}) {
    const auto p = with({steady(0, 51, 100, 20), r, steady(6, 51, 100, 20), steady(7, 51, 100, 20)});
    CAPTURE(name);
    CHECK(p.found().size() == 1);
    REQUIRE(p.findings().size() == 1);
    CHECK(p.findings()[0].name == name);
    CHECK(p.findings()[0].stream == r.index);
  }
}

TEST_CASE("slow readers are counted and left out of the others' figures") {
  auto slow = steady(1, 51, 4000, 500);
  slow.slow = true;
  const auto p = with({steady(0, 51, 100, 20), slow});
  CHECK(p.number(figure::slow_readers) == 1);
  CHECK(*p.value("ttft_ms", "max") == 100);
  CHECK(p.number(figure::output_tokens) == 51);
  CHECK(p.found().empty());
}

TEST_CASE("a stream that was resumed is left out of all latencies but that of its resume") {
  auto r = steady(1, 20, 4000, 20);
  r.drop(4'400'000);
  r.resumes = 1;
  r.take(4'700'000, 12, 32);
  r.ended = 4'700'000;
  const auto p = with({steady(0, 51, 100, 20), r});
  CHECK(p.found().empty());  // neither its stall nor its burst
  CHECK(*p.value("ttft_ms", "max") == 100);
  CHECK(*p.value("itl_ms", "max") == 20);
  CHECK(p.of(figure::itl_per_token_ms).max() == 20);
  CHECK(p.number(figure::output_tokens) == 51 + 32);
  CHECK(p.number(figure::frames) == 51 + 21);
  CHECK(p.number(figure::disconnects) == 1);
  CHECK(p.number(figure::resumes_ok) == 1);
  CHECK(p.number(figure::resumes_expired) == 0);
  REQUIRE(p.of(figure::resume_gap_ms).count() == 1);
  CHECK(p.of(figure::resume_gap_ms).max() == 300);
}

TEST_CASE("a loss across a resume is found, and an answer that expired is counted") {
  auto r = steady(1, 20, 100, 20);
  r.drop(500'000);
  r.take(700'000, 1, 22);
  r.how = ending::refused;
  r.error = "resume_expired: gone";
  r.expired = true;
  r.ended = 700'000;
  const auto p = with({r});
  CHECK(p.number(figure::gaps) == 1);
  CHECK(p.found().at("lost token") == 1);
  CHECK(p.number(figure::resumes_expired) == 1);
  CHECK(p.number(figure::errors) == 1);
}

TEST_CASE("a follower has to read what the one who asked has read") {
  const auto reads = [](std::uint64_t from, const std::string& text, ending how = ending::completed) {
    stream_record r;
    for (std::uint64_t i = from; i <= 3; ++i) r.take(static_cast<micros>(i), 1, i);
    r.text = text;
    r.how = how;
    r.ended = 10;
    r.error = how == ending::refused ? "too_many_jobs: m" : "";
    return r;
  };
  const auto asked = reads(1, "abc");
  const auto together = [&](const stream_record& a, const stream_record& f) {
    pool p({});
    p.add_follower(a, f);
    return p;
  };
  CHECK(together(asked, reads(1, "abc")).found().empty());
  CHECK(together(asked, reads(1, "abc")).number(figure::followers) == 1);
  CHECK(together(asked, reads(1, "abx")).number(figure::text_mismatches) == 1);
  CHECK(together(asked, reads(1, "ab")).number(figure::text_mismatches) == 1);
  const auto lost = together(asked, reads(2, "bc"));
  CHECK(lost.number(figure::gaps) == 1);
  CHECK(lost.findings()[0].what == "a follower: 1 lost by seq");
  const auto refused = together(asked, reads(1, "", ending::refused));
  CHECK(refused.number(figure::followers_failed) == 1);
  CHECK(refused.number(figure::followers) == 0);
  CHECK(refused.error_texts().at("follower: too_many_jobs: m") == 1);
  CHECK(together(asked, reads(1, "a", ending::cut)).number(figure::followers) == 0);
  // Where the asker's stream saw no end, there is no text to compare a follower's with.
  CHECK(together(reads(1, "a", ending::dropped), reads(1, "abc")).found().empty());
}

TEST_CASE("answers to one prompt are compared, and one that goes on further is no mismatch") {
  pool p({});
  const auto say = [&](std::size_t prompt, std::string text) {
    stream_record r;
    r.text = std::move(text);
    p.compare_text(prompt, r);
  };
  say(0, "one two");
  say(1, "three");
  say(0, "one two three");
  say(0, "one");
  CHECK(p.number(figure::text_mismatches) == 0);
  CHECK(p.number(figure::texts_compared) == 2);
  say(0, "one two five");
  CHECK(p.number(figure::text_mismatches) == 1);
  CHECK(p.found().at("text mismatch") == 1);
}

TEST_CASE("answers that differ on two workers are found when their pools come together") {
  pool a({}), b({});
  stream_record r;
  r.text = "one";
  a.compare_text(0, r);
  r.text = "two";
  b.compare_text(0, r);
  a.merge(b);
  CHECK(a.number(figure::text_mismatches) == 1);
}

TEST_CASE("two workers' pools together are one") {
  pool whole({}), a({}), b({});
  for (int i = 0; i < 8; ++i) {
    auto r = steady(i, 30, 100 + i, 10 + i);
    whole.add(r);
    (i % 2 ? a : b).add(r);
  }
  a.merge(b);
  a.conclude(2);
  whole.conclude(2);
  for (std::size_t i = 0; i < figure_count; ++i) {
    CAPTURE(figure_table[i].name);
    CHECK(a.number(figure{i}) == whole.number(figure{i}));
    if (i < distribution_count) CHECK(a.of(figure{i}).quantile(0.9) == whole.of(figure{i}).quantile(0.9));
  }
  CHECK(a.seconds().size() == whole.seconds().size());
}

TEST_CASE("the warm-up leaves no trace") {
  pool_options o;
  o.from = 1'000'000;
  auto before = steady(0, 20, 100, 20);
  before.scheduled = 0;
  auto after = steady(1, 20, 1200, 20);
  after.scheduled = 1'100'000;
  const auto p = with({before, after}, o);
  CHECK(p.number(figure::requests) == 1);
  CHECK(*p.value("ttft_ms", "max") == 100);
  CHECK(p.number(figure::output_tokens) == 20);
}

TEST_CASE("errors are counted by what they say") {
  stream_record r;
  r.how = ending::refused;
  r.error = "429 overloaded";
  const auto p = with({r, r});
  CHECK(p.number(figure::errors) == 2);
  CHECK(p.error_texts().at("429 overloaded") == 2);
}

}  // namespace weir::tests::pool_test
