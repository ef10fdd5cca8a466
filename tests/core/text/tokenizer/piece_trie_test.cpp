#include "core/text/tokenizer/piece_trie.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>

#include "tests/support/seed.h"

namespace weir::tests::piece_trie_test {

using namespace weir::core;

namespace {

using hits = std::vector<std::pair<std::int32_t, std::size_t>>;

hits hits_of(const piece_trie& t, std::string_view text) {
  hits out;
  t.walk(text, [&](std::int32_t value, std::size_t length) { out.emplace_back(value, length); });
  return out;
}

}  // namespace

TEST_CASE("a trie of pieces finds all prefixes of a text, the shorter ones first") {
  const piece_trie t({{"ab", 1}, {"a", 2}, {"", 3}, {"abc", 4}, {"b", 5}, {"ab", 6}});
  CHECK(hits_of(t, "abcd") == hits{{2, 1}, {6, 2}, {4, 3}});
  CHECK(hits_of(t, "b") == hits{{5, 1}});
  CHECK(hits_of(t, "").empty());
  CHECK(hits_of(t, "c").empty());
  CHECK(t.longest() == 3);
  CHECK(t.longest_at("abx") == 2);
  CHECK(t.longest_at("x") == 0);
  CHECK(piece_trie().empty());
  CHECK(piece_trie({{"", 1}}).empty());
  CHECK(hits_of(piece_trie(), "a").empty());
}

TEST_CASE("a trie of random pieces finds what a search through all of them finds") {
  std::mt19937_64 random(drawn_seed(31));
  for (int round = 0; round < 200; ++round) {
    const auto word = [&] {
      std::string out;
      for (auto n = random() % 6; n > 0; --n) out.push_back(static_cast<char>("ab\x80\xFF\0z"[random() % 6]));
      return out;
    };
    std::vector<std::string> words;
    for (auto n = random() % 30; n > 0; --n) words.push_back(word());
    std::vector<std::pair<std::string_view, std::int32_t>> all;
    std::map<std::size_t, std::int32_t> expected;
    for (const auto& w : words) all.emplace_back(w, static_cast<std::int32_t>(all.size()));
    const std::string text = word() + word();
    for (const auto& [w, value] : all)
      if (!w.empty() && text.starts_with(w)) expected[w.size()] = value;
    hits wanted;
    for (const auto& [length, value] : expected) wanted.emplace_back(value, length);
    REQUIRE(hits_of(piece_trie(all), text) == wanted);
  }
}

}  // namespace weir::tests::piece_trie_test
