#include "core/stop/stop_strings.h"

#include <catch2/catch.hpp>
#include <random>

#include "core/stop/stop_matcher.h"

namespace weir::tests::stop_strings_test {

using namespace weir::core;

TEST_CASE("stop strings: 64 strings of 1,000 random bytes take some 24 bytes for each of theirs") {
  std::mt19937 random(1);
  std::vector<std::string> all(64);
  for (auto& s : all)
    while (s.size() < 1000) s += static_cast<char>(random());
  const stop_strings ready = all;
  CHECK(ready.bytes() <= 24 * (64 * 1000 + 1));
  const auto copy = ready;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    stop_matcher m(copy);
    CHECK_FALSE(m.feed(std::string_view(all[i]).substr(0, 999)));
    CHECK(m.pending() == 999);
    CHECK(m.feed(std::string_view(all[i]).substr(999)) == 0);
    CHECK(m.which() == i);
  }
}

TEST_CASE("stop strings: of equal strings the first counts, and a string inside another ends first") {
  stop_matcher equal(stop_strings{"zz", "ab", "ab"});
  CHECK(equal.feed("xab") == 1);
  CHECK(equal.which() == 1);
  stop_matcher inside(stop_strings{"aXbc", "Xb"});
  CHECK(inside.feed("aXb") == 1);
  CHECK(inside.which() == 1);
}

TEST_CASE("stop strings: the search falls back through beginnings of beginnings") {
  const std::string run(1000, 'a');
  stop_matcher m(stop_strings{run + "b", run + "c"});
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(m.feed(run));
    CHECK_FALSE(m.feed("d"));
    CHECK(m.pending() == 0);
  }
  CHECK_FALSE(m.feed(run + run));
  CHECK(m.pending() == 1000);
  const auto fed = m.fed();
  CHECK(m.feed("c") == fed - 1000);
  CHECK(m.which() == 1);
}

}  // namespace weir::tests::stop_strings_test
