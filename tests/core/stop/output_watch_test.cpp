#include "core/stop/output_watch.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/support/budget.h"
#include "tests/support/seed.h"
#include "tests/support/toy_tokenizer.h"

namespace weir::tests::output_watch_test {

using namespace weir::core;
using verdict = output_watch::verdict;

namespace {

// An output that grows by one letter at a time: id 0 is "a".
struct watched {
  token_table text{*letters(61)};
  std::vector<token> output;
  output_watch watch;

  watched(std::vector<std::string> stops, std::uint32_t max_repeats = 0, std::uint32_t min_tokens = 0,
          bool shows_stop = false)
      : watch({.stops = stops,
               .max_repeats = max_repeats,
               .min_tokens = min_tokens,
               .shows_stop = shows_stop}) {}
  explicit watched(output_watch::rules r) : watch(std::move(r)) {}

  verdict take(token_id id) {
    output.push_back({id, {}});
    return watch.take(output, text);
  }
};

}  // namespace

TEST_CASE("output watch: a token that may begin a stop string is decided once it does not") {
  watched w({"bcd"});
  for (const token_id id : {0, 1, 2}) CHECK(w.take(id) == verdict::goes_on);  // a b c
  CHECK(w.watch.decided() == 1);
  CHECK(w.take(0) == verdict::goes_on);
  CHECK(w.watch.decided() == 4);
  for (const token_id id : {1, 2}) CHECK(w.take(id) == verdict::goes_on);
  CHECK(w.take(3) == verdict::stop_string);
  CHECK(w.watch.cut_off());
  CHECK(w.watch.decided() == 4);
  CHECK_FALSE(w.watch.shown_bytes());
}

TEST_CASE(
    "output watch: a stop string that is shown is decided to its last byte, and not before it matched") {
  watched w({"bcd"}, 0, 0, true);
  for (const token_id id : {0, 1, 2}) CHECK(w.take(id) == verdict::goes_on);  // a b c
  CHECK(w.watch.decided() == 1);
  CHECK(w.take(3) == verdict::stop_string);
  CHECK(w.watch.decided() == 4);
  CHECK_FALSE(w.watch.shown_bytes());

  // The stop string ends inside its last token, whose rest is not shown.
  const token_table text{toy_tokenizer({"x", "a<", "/b>y"})};
  output_watch inside({.stops = {"</b>"}, .shows_stop = true});
  std::vector<token> output;
  for (const token_id id : {0, 1, 2}) {
    output.push_back({id, {}});
    CHECK(inside.take(output, text) == (id == 2 ? verdict::stop_string : verdict::goes_on));
    CHECK(inside.decided() == (id == 2 ? 3u : 1u));
  }
  CHECK(inside.shown_bytes() == 6u);  // xa</b>
}

TEST_CASE("output watch: the string that matched is told by its index") {
  watched w({"xy", "bc"});
  CHECK(w.take(1) == verdict::goes_on);
  CHECK(w.take(2) == verdict::stop_string);
  CHECK(w.watch.which() == 1);
  CHECK(w.watch.decided() == 0);
}

TEST_CASE("output watch: before min_tokens nothing ends an output, and no stop string begins there") {
  watched w({"ab"}, 0, 2);
  CHECK(w.take(0) == verdict::goes_on);
  CHECK(w.take(0) == verdict::goes_on);
  CHECK(w.watch.decided() == 2);
  CHECK(w.take(1) == verdict::goes_on);  // its "a" was below min_tokens
  CHECK(w.take(0) == verdict::goes_on);
  CHECK(w.take(1) == verdict::stop_string);

  watched loop({}, 3, 5);
  for (int i = 0; i < 4; ++i) CHECK(loop.take(7) == verdict::goes_on);
  CHECK(loop.take(7) == verdict::repetition);
  CHECK(loop.watch.decided() == 5);
  CHECK_FALSE(loop.watch.cut_off());
}

TEST_CASE("output watch: a token that may begin a banned string is decided once it does not") {
  watched w(output_watch::rules{.banned = {"bcd"}});
  for (const token_id id : {0, 1, 2}) CHECK(w.take(id) == verdict::goes_on);  // a b c
  CHECK(w.watch.decided() == 1);
  CHECK(w.take(3) == verdict::banned_string);
  CHECK(w.watch.decided() == 1);
  CHECK(w.watch.banned_from(w.output, w.text) == 1);
  w.watch.go_back(w.output, 1, w.text);
  w.output.resize(1);
  CHECK(w.take(0) == verdict::goes_on);
  CHECK(w.watch.decided() == 2);
}

TEST_CASE("output watch: of a stop string and a banned one, the one that ends first counts") {
  const token_table text{toy_tokenizer({"x", "Stop here"})};
  struct first_of {
    std::string stop, banned;
    bool shows_stop;
    verdict expected;
  };
  const first_of all[] = {
      {"top", "stop h", false, verdict::stop_string}, {"here", "stop", false, verdict::banned_string},
      {"Stop", "stop", false, verdict::stop_string},  {"Stop", "stop", true, verdict::banned_string},
      {"Stop", "top", false, verdict::stop_string},   {"top", "xstop", true, verdict::banned_string},
      {"stop", "xx", false, verdict::goes_on},
  };
  for (const first_of& f : all) {
    CAPTURE(f.stop, f.banned, f.shows_stop);
    output_watch w({.stops = {f.stop}, .banned = {f.banned}, .shows_stop = f.shows_stop});
    std::vector<token> output{{0, {}}};
    CHECK(w.take(output, text) == verdict::goes_on);
    output.push_back({1, {}});
    CHECK(w.take(output, text) == f.expected);
  }
}

TEST_CASE("output watch: a job that gives up ends before the banned string, inside a token too") {
  const token_table text{toy_tokenizer({"x", "ab.Ba", "D y"})};
  output_watch w({.banned = {"bad"}});
  std::vector<token> output;
  for (const token_id id : {0, 1, 2}) {
    output.push_back({id, {}});
    CHECK(w.take(output, text) == (id == 2 ? verdict::banned_string : verdict::goes_on));
  }
  CHECK(w.banned_from(output, text) == 1);
  w.end_before_banned(output, text);
  CHECK(w.decided() == 2);
  CHECK(w.shown_bytes() == 4);  // xab.
}

TEST_CASE("output watch: one that went back is as one that was never there") {
  std::mt19937 random(static_cast<unsigned>(weir::tests::drawn_seed(0)));
  unsigned went_back = 0;
  const unsigned rounds = weir::tests::rounds(300);
  for (unsigned round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const auto some = [&] {
      std::vector<std::string> out(random() % 3);
      for (auto& s : out)
        for (auto n = 1 + random() % 4; n > 0; --n) s += static_cast<char>('a' + random() % 3);
      return out;
    };
    const output_watch::rules rules{.stops = some(),
                                    .banned = {"abca", "bb"},
                                    .max_repeats = static_cast<std::uint32_t>(random() % 2 ? 0 : 4),
                                    .min_tokens = static_cast<std::uint32_t>(random() % 8)};
    watched w(rules);
    std::uint32_t decided = 0;  // it stays decided what tokens have decided that are taken back
    for (int step = 0; step < 200; ++step) {
      const auto did = w.take(static_cast<token_id>(random() % 3));
      watched fresh(rules);
      for (std::size_t i = 0; i + 1 < w.output.size(); ++i) fresh.take(w.output[i].id);
      REQUIRE(fresh.take(w.output.back().id) == did);
      decided = std::max(decided, fresh.watch.decided());
      REQUIRE(w.watch.decided() == decided);
      if (did == verdict::goes_on) continue;
      if (did != verdict::banned_string) break;
      ++went_back;
      const std::uint32_t from = w.watch.banned_from(w.output, w.text);
      REQUIRE(from >= w.watch.decided());
      w.watch.go_back(w.output, from, w.text);
      w.output.resize(from);
    }
  }
  CHECK(went_back > rounds / 3);
}

}  // namespace weir::tests::output_watch_test
