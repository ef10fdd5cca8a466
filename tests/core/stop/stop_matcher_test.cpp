#include "core/stop/stop_matcher.h"
#include "tests/support/seed.h"

#include <catch2/catch.hpp>
#include <random>

namespace weir::tests::stop_matcher_test {

using namespace weir::core;

namespace {

struct match {
  std::uint64_t at;
  std::size_t which;
};

// The definition: tries every end of the text.
std::optional<match> search(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0, which = 0;
    for (std::size_t i = 0; i < stops.size(); ++i) {
      if (!std::string_view(text).substr(0, end).ends_with(stops[i]) || stops[i].size() <= longest) continue;
      longest = stops[i].size();
      which = i;
    }
    if (longest > 0) return match{end - longest, which};
  }
  return std::nullopt;
}

std::size_t begun(const std::vector<std::string>& stops, const std::string& text) {
  std::size_t longest = 0;
  for (const auto& s : stops) {
    for (std::size_t n = 1; n < s.size(); ++n) {
      if (text.ends_with(std::string_view(s).substr(0, n))) longest = std::max(longest, n);
    }
  }
  return longest;
}

}  // namespace

TEST_CASE("a matcher of no strings matches nothing and withholds nothing") {
  stop_matcher m(std::vector<std::string>{});
  CHECK(m.empty());
  CHECK_FALSE(m.feed("anything"));
  CHECK(m.pending() == 0);
}

TEST_CASE("a stop string is found wherever the pieces are cut") {
  const std::string text = "so it ends with \xE2\x96\x81STOP, at last";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    stop_matcher m(std::vector<std::string>{"\x81STOP"});
    auto at = m.feed(std::string_view(text).substr(0, cut));
    if (!at) at = m.feed(std::string_view(text).substr(cut));
    CHECK(at == 18);
  }
}

TEST_CASE("matches, strings and withheld bytes equal a plain search, for random strings and texts") {
  std::mt19937 random(drawn_seed(17));
  int found = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::size_t letters = 2 + random() % 3;
    const auto word = [&](std::size_t n) {
      std::string s;
      while (s.size() < n) s += static_cast<char>("ab\xFF\x00"[random() % letters]);
      return s;
    };
    std::vector<std::string> stops;
    for (std::size_t n = 1 + random() % 5; n > 0; --n) stops.push_back(word(1 + random() % 7));
    const std::string text = word(random() % 40);
    stop_matcher m(stops);
    const auto expected = search(stops, text);
    std::optional<std::uint64_t> at;
    std::size_t fed = 0;
    while (fed < text.size() && !at) {
      const std::size_t n = std::min<std::size_t>(random() % 4, text.size() - fed);
      at = m.feed(std::string_view(text).substr(fed, n));
      fed += n;
      if (!at) REQUIRE(m.pending() == begun(stops, text.substr(0, fed)));
      if (!at) REQUIRE(m.fed() == fed);
    }
    REQUIRE(at.has_value() == expected.has_value());
    if (at) REQUIRE(*at == expected->at);
    if (at) REQUIRE(m.which() == expected->which);
    found += at.has_value();
  }
  CHECK(found > 1000);
}

}  // namespace weir::tests::stop_matcher_test
