#include "core/stop/output_watch.h"

#include <catch2/catch.hpp>
#include <vector>

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
      : watch(stops, max_repeats, min_tokens, shows_stop) {}

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
  CHECK(w.watch.matched());
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
  output_watch inside(std::vector<std::string>{"</b>"}, 0, 0, true);
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
  CHECK_FALSE(loop.watch.matched());
}

}  // namespace weir::tests::output_watch_test
