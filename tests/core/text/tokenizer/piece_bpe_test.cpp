#include "core/text/tokenizer/piece_bpe.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/support/free_turn.h"
#include "tests/support/seed.h"

namespace weir::tests::piece_bpe_test {

using namespace weir::core;

namespace {

using ids = std::vector<token_id>;

scored_pieces scored(std::initializer_list<scored_piece> all) {
  return {{all.begin(), all.end()}, 0, false};
}
constexpr scored_piece unknown_piece{"<unk>", 0, piece_kind::unknown};

ids joined_by(const piece_bpe& m, std::string_view word, turn* at = nullptr) {
  piece_bpe::workspace w;
  ids out;
  m.encode(word, w, out, at);
  return out;
}

}  // namespace

TEST_CASE("of two neighbours the pair of the highest score is joined first, of equal ones the left one") {
  const piece_bpe m(scored({unknown_piece, {"a", -9}, {"b", -9}, {"ab", -2}, {"ba", -1}, {"aa", -3}}));
  CHECK(joined_by(m, "aba") == ids{1, 4});
  CHECK(joined_by(m, "aaa") == ids{5, 1});
  const piece_bpe equal(scored({unknown_piece, {"a", -9}, {"b", -9}, {"ab", -2}, {"ba", -2}}));
  CHECK(joined_by(equal, "aba") == ids{3, 1});
  CHECK(joined_by(equal, "bab") == ids{4, 2});
}

TEST_CASE("characters without a piece are joined to a piece, or unknown, or bytes") {
  auto pieces = scored({unknown_piece, {"a", -9}, {"éz", -1}, {"<0xC3>", 0, piece_kind::byte},
                        {"<0xA9>", 0, piece_kind::byte}});
  const piece_bpe m(pieces);
  CHECK(joined_by(m, "aéza") == ids{1, 2, 1});
  CHECK(joined_by(m, "ééazz") == ids{0, 1, 0});
  CHECK(joined_by(m, "<0xC3>") == ids{0});
  pieces.byte_fallback = true;
  CHECK(joined_by(piece_bpe(pieces), "éaz") == ids{3, 4, 1, 0});
}

TEST_CASE("a user-defined piece is joined with nothing, and an unused one is split again") {
  const piece_bpe m(scored({unknown_piece, {"a", -9}, {"b", -9}, {"ab", 0, piece_kind::user_defined},
                            {"aab", -1}, {"aa", -2}}));
  CHECK(joined_by(m, "aab") == ids{1, 3});
  CHECK(joined_by(m, "aa") == ids{5});
  const piece_bpe unused(scored({unknown_piece, {"a", -9}, {"b", -9}, {"ab", -1, piece_kind::unused},
                                 {"abab", -2}, {"aba", -3, piece_kind::unused}}));
  CHECK(joined_by(unused, "ab") == ids{1, 2});
  CHECK(joined_by(unused, "abab") == ids{4});
  CHECK(joined_by(unused, "aba") == ids{1, 2, 1});
}

TEST_CASE("a word that is a piece is that piece where whole words are asked for") {
  const auto pieces = scored({unknown_piece, {"a", -9}, {"b", -9}, {"ba", -1}, {"aba", -2}, {"ab", -3}});
  CHECK(joined_by(piece_bpe(pieces), "aba") == ids{1, 3});
  CHECK(joined_by(piece_bpe(pieces, true), "aba") == ids{4});
}

TEST_CASE("random words are joined as by looking at all pairs each time") {
  std::mt19937_64 random(drawn_seed(31));
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> texts{"<unk>"};
    std::map<std::string, std::pair<token_id, double>> known;
    scored_pieces pieces{{unknown_piece}, 0, false};
    texts.reserve(40);
    for (auto n = random() % 20; n > 0; --n) {
      std::string text;
      for (auto k = 1 + random() % 4; k > 0; --k) text.push_back("abc"[random() % 3]);
      const double score = static_cast<double>(random() % 5);
      if (!known.emplace(text, std::pair{static_cast<token_id>(texts.size()), score}).second) continue;
      texts.push_back(text);
      pieces.all.push_back({texts.back(), score});
    }
    std::vector<std::string> parts;
    std::string word;
    for (auto k = random() % 14; k > 0; --k) word.push_back("abc"[random() % 3]);
    for (const char c : word) parts.emplace_back(1, c);
    for (;;) {
      std::size_t best = parts.size();
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = known.find(parts[i] + parts[i + 1]);
        if (found == known.end()) continue;
        if (best == parts.size() ||
            found->second.second > known.at(parts[best] + parts[best + 1]).second)
          best = i;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    ids expected;
    bool after_unknown = false;
    for (const auto& part : parts) {
      const auto found = known.find(part);
      if (found != known.end()) expected.push_back(found->second.first);
      if (found == known.end() && !after_unknown) expected.push_back(0);
      after_unknown = found == known.end();
    }
    INFO(word);
    REQUIRE(joined_by(piece_bpe(pieces), word) == expected);
  }
}

TEST_CASE("work on a word stops when nobody waits for it") {
  const piece_bpe m(scored({unknown_piece, {"a", -1}, {"aa", -2}}));
  free_turn t;
  t.unwanted = true;
  CHECK_THROWS_AS(joined_by(m, std::string(100'000, 'a'), &t), nobody_waits);
}

}  // namespace weir::tests::piece_bpe_test
