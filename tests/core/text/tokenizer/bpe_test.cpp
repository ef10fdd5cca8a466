#include "core/text/tokenizer/bpe.h"

#include <map>
#include <random>

#include "core/text/tokenizer/unicode.h"
#include "tests/core/text/text_fixtures.h"
#include "tests/support/seed.h"

namespace weir::tests::bpe_test {

using namespace weir::core;

namespace {

using ids = std::vector<token_id>;

ids encode(const boost::json::value& model, std::string_view word) {
  ids out;
  bpe::workspace w;
  bpe(json_field(model, "model")).encode(word, w, out);
  return out;
}

boost::json::value abc(std::string_view more = "") {
  return json(fmt::format(R"({{"vocab":{{"a":0,"b":1,"c":2,"ab":3,"bc":4,"abc":5,"?":6}},
                               "merges":["b c","a b","a bc"]{}}})",
                          more));
}

std::string complaint(std::string_view model) {
  const auto value = json(model);
  try {
    bpe(json_field(value, "tokenizer.json.model"));
  } catch (const refusal& r) {
    return r.why.message;
  }
  return "";
}

// What merging means: again and again, the earliest merge of all pairs, the leftmost of its places.
ids merged_slowly(ids word, const std::map<std::pair<token_id, token_id>, std::pair<int, token_id>>& merges) {
  for (;;) {
    int best = -1, rank = 1 << 30;
    for (int i = 0; i + 1 < static_cast<int>(word.size()); ++i) {
      const auto m = merges.find({word[i], word[i + 1]});
      if (m != merges.end() && m->second.first < rank) rank = m->second.first, best = i;
    }
    if (best < 0) return word;
    word[best] = merges.at({word[best], word[best + 1]}).second;
    word.erase(word.begin() + best + 1);
  }
}

}  // namespace

TEST_CASE("pairs merge by rank, and from the left where ranks are equal") {
  CHECK(encode(abc(), "abc") == ids{5});
  CHECK(encode(abc(), "abab") == ids{3, 3});
  CHECK(encode(abc(), "abcab") == ids{5, 3});
  CHECK(encode(json(R"({"vocab":{"a":0,"aa":1},"merges":[["a","a"]]})"), "aaaaa") == ids{1, 1, 0});
}

TEST_CASE("the heap gives what merging pair by pair gives, on random vocabularies and words") {
  std::mt19937 random(drawn_seed(7));
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> pieces = {"a", "b", "c"};
    boost::json::object vocab{{"a", 0}, {"b", 1}, {"c", 2}};
    boost::json::array lines;
    std::map<std::pair<token_id, token_id>, std::pair<int, token_id>> merges;
    while (merges.size() < 25) {
      const auto l = static_cast<token_id>(random() % pieces.size()),
                 r = static_cast<token_id>(random() % pieces.size());
      const std::string both = pieces[l] + pieces[r];
      if (vocab.contains(both) || both.size() > 8) continue;
      merges[{l, r}] = {static_cast<int>(merges.size()), static_cast<token_id>(pieces.size())};
      lines.push_back(boost::json::array{boost::json::string(pieces[l]), boost::json::string(pieces[r])});
      vocab[both] = static_cast<token_id>(pieces.size());
      pieces.push_back(both);
    }
    const boost::json::value model{{"vocab", vocab}, {"merges", lines}};
    const bpe fast{json_field(model, "model")};
    bpe::workspace w;
    for (int n = 0; n < 40; ++n) {
      std::string word;
      ids letters, out;
      for (int i = 0; i < n; ++i)
        letters.push_back(static_cast<token_id>(random() % 3)), word += pieces[letters.back()];
      fast.encode(word, w, out);
      REQUIRE(out == merged_slowly(letters, merges));
    }
  }
}

TEST_CASE("ignore_merges takes a whole word that the vocabulary has") {
  CHECK(encode(json(R"({"vocab":{"a":0,"b":1,"ab":2},"merges":[],"ignore_merges":true})"), "ab") == ids{2});
  CHECK(encode(json(R"({"vocab":{"a":0,"b":1,"ab":2},"merges":[]})"), "ab") == ids{0, 1});
}

TEST_CASE("characters without a piece become unknown tokens, one for all neighbours where they fuse") {
  CHECK(encode(abc(R"(,"unk_token":"?")"), "axyb") == ids{0, 6, 6, 1});
  CHECK(encode(abc(R"(,"unk_token":"?","fuse_unk":true)"), "axybz") == ids{0, 6, 1, 6});
  CHECK(encode(abc(), "axb") == ids{3});
}

TEST_CASE("byte fallback spells characters in bytes, if it has all of theirs") {
  const char* some =
      R"({"vocab":{"a":0,"<0xC3>":1,"<0xA9>":2,"?":3},"merges":[],"unk_token":"?","byte_fallback":true})";
  CHECK(encode(json(some), "aé") == ids{0, 1, 2});
  CHECK(encode(json(some), "aè") == ids{0, 3});
}

TEST_CASE("a word of half a million characters is merged in one go") {
  std::string word;
  for (int i = 0; i < 500000; ++i) word += "abc"[i % 2];
  const auto out = encode(abc(), word);
  CHECK(out.size() == 250000);
}

TEST_CASE("what is wrong with a model is named") {
  CHECK(
      complaint(R"({"vocab":{"a":0},"merges":["a b"]})").find("tokenizer.json.model.merges: [0]: 'a', 'b'") ==
      0);
  CHECK(complaint(R"({"vocab":{"a":0},"merges":["ab"]})").find("[0] is not a pair") != std::string::npos);
  CHECK(complaint(R"({"vocab":{"a":-1},"merges":[]})").find("the id of 'a'") != std::string::npos);
  CHECK(complaint(R"({"vocab":{"a":99999999},"merges":[]})").find("the id of 'a'") != std::string::npos);
  CHECK(complaint(R"({"vocab":{},"merges":[],"unk_token":"u"})").find("'u' is not in the vocabulary") !=
        std::string::npos);
  CHECK(complaint(R"({"vocab":{},"merges":[],"dropout":0.1})").find("dropout is not supported yet") !=
        std::string::npos);
  CHECK(complaint(R"({"vocab":{},"merges":[],"end_of_word_suffix":"</w>"})").find("not supported yet") !=
        std::string::npos);
}

}  // namespace weir::tests::bpe_test
