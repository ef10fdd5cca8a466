#include "core/grammar/masks/id_tree.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>

namespace weir::tests::id_tree_test {

using namespace weir::core::grammar;
using weir::core::token_id;

namespace {

// Random short texts over a few letters, sorted, with their places as ids.
struct random_texts {
  std::vector<std::string> texts;
  std::vector<std::pair<std::string_view, token_id>> pairs;

  random_texts(std::mt19937& random, std::string_view letters, std::size_t n, std::size_t longest) {
    std::set<std::string> all;
    for (std::size_t i = 0; i < n; ++i) {
      std::string text(1 + random() % longest, ' ');
      for (auto& c : text) c = letters[random() % letters.size()];
      all.insert(std::move(text));
    }
    texts.assign(all.begin(), all.end());
    for (const auto& text : texts) pairs.emplace_back(text, static_cast<token_id>(pairs.size()));
  }
  std::string_view of(token_id id) const { return texts[static_cast<std::size_t>(id)]; }
};

}  // namespace

TEST_CASE("a walk visits in order what is alive, and its ids are the texts that are", "[grammar]") {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const random_texts given(random, "abcd", 200, 6);
    const id_tree tree(given.pairs);
    // Alive: no two equal letters in a row; behind a `d` nothing is looked at.
    const auto alive = [](std::string_view text) {
      for (std::size_t i = 0; i < text.size(); ++i)
        if ((i > 0 && text[i] == text[i - 1]) || (i + 1 < text.size() && text[i] == 'd')) return false;
      return true;
    };
    std::vector<token_id> expected, found;
    for (const auto& [text, id] : given.pairs)
      if (alive(text)) expected.push_back(id);
    tree.walk(
        1, [](int last, unsigned char b) { return last == b ? 0 : int{b}; },
        [&](std::uint32_t i, int last) {
          found.insert(found.end(), tree.ids(i).begin(), tree.ids(i).end());
          return last != 'd';
        });
    CHECK(found == expected);
  }
}

TEST_CASE("children are found by their bytes", "[grammar]") {
  std::mt19937 random(2);
  const random_texts given(random, "abcdefghijkl", 500, 4);
  const id_tree tree(given.pairs);
  for (const auto& [text, id] : given.pairs) {
    std::optional<std::uint32_t> at = 0;
    for (const char c : text) at = at ? tree.child(*at, static_cast<unsigned char>(c)) : at;
    REQUIRE(at);
    CHECK(std::ranges::find(tree.ids(*at), id) != tree.ids(*at).end());
    CHECK_FALSE(tree.child(*at, 'z'));
  }
}

TEST_CASE("a tree knows the kinds and the length of what is below a node", "[grammar]") {
  std::mt19937 random(3);
  const random_texts given(random, "ag5_\xC3", 300, 7);
  const id_tree tree(given.pairs);
  const auto kinds_of = [](std::string_view text) {
    byte_kinds out = 0;
    for (const char c : text) out |= kind_of(static_cast<unsigned char>(c));
    return out;
  };
  tree.walk(
      1, [](int, unsigned char) { return 1; },
      [&](std::uint32_t i, int) {
        byte_kinds kinds = 0;
        std::size_t longest = 0;
        for (const auto id : tree.ids_below(i)) {
          const auto rest = given.of(id).substr(tree[i].depth);
          kinds |= kinds_of(rest);
          longest = std::max(longest, rest.size());
        }
        const auto length = static_cast<std::uint32_t>(longest);
        CHECK(tree.all_below(i, kinds, length));
        if (length > 0) CHECK_FALSE(tree.all_below(i, kinds, length - 1));
        for (const char c : std::string_view("ag5_\xC3"))
          if (const auto kind = kind_of(static_cast<unsigned char>(c)); kinds & kind)
            CHECK_FALSE(tree.all_below(i, kinds & ~kind, length));
        return true;
      });
}

TEST_CASE("strings longer than a tree counts are taken for endless ones", "[grammar]") {
  const std::string text(400, 'a');
  const std::vector<std::pair<std::string_view, token_id>> one{{text, 0}};
  const id_tree tree(one);
  CHECK(tree.all_below(0, kind_of('a'), unbounded));
  CHECK_FALSE(tree.all_below(0, kind_of('a'), 399));
  CHECK_FALSE(tree.all_below(0, kind_of('a'), 400));
  CHECK(tree.all_below(200, kind_of('a'), 200));
}

TEST_CASE("a kind is within a set of bytes that has all of its bytes", "[grammar]") {
  byte_set letters;
  for (char c = 'a'; c <= 'z'; ++c) letters.set(static_cast<unsigned char>(c));
  const auto all = kind_of('a') | kind_of('q');
  CHECK(kinds_within(letters) == all);
  letters.reset('q');
  CHECK(kinds_within(letters) == (all & ~kind_of('q')));
  CHECK(kinds_within({}) == 0);
  const auto every = kinds_within(byte_set().set());
  for (unsigned b = 0; b < 256; ++b) CHECK((every & kind_of(static_cast<unsigned char>(b))) != 0);
}

}  // namespace weir::tests::id_tree_test
