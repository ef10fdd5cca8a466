#include "core/text/tokenizer/unigram.h"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <random>

#include "tests/core/text/text_fixtures.h"
#include "tests/support/free_turn.h"
#include "tests/support/seed.h"

namespace weir::tests::unigram_test {

using namespace weir::core;

namespace {

using ids = std::vector<token_id>;

boost::json::object unigram_json(
    std::initializer_list<std::pair<const char*, double>> pieces) {
  boost::json::array vocab;
  for (const auto& [text, score] : pieces) vocab.push_back(boost::json::array{text, score});
  return {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", std::move(vocab)}};
}

ids cut_by(const unigram& m, std::string_view word, turn* at = nullptr) {
  unigram::workspace w;
  ids out;
  m.encode(word, w, out, at);
  return out;
}

unigram unigram_of(const boost::json::value& model, const std::vector<std::string_view>& hidden = {}) {
  return unigram(json_field(model, "model"), hidden);
}

std::string unigram_complaint(const boost::json::value& model) {
  try {
    unigram_of(model);
  } catch (const refusal& r) {
    return r.why.message;
  }
  return "";
}

// The best sum of scores over all ways to cut `text`, by trying all of them.
double best_of_all(std::string_view text, const std::map<std::string, double>& scores, double unknown) {
  if (text.empty()) return 0;
  double best = -1e300;
  bool single = false;
  for (std::size_t n = 1; n <= text.size(); ++n) {
    const auto found = scores.find(std::string(text.substr(0, n)));
    if (found == scores.end()) continue;
    single = single || n == 1;
    best = std::max(best, found->second + best_of_all(text.substr(n), scores, unknown));
  }
  if (!single) best = std::max(best, unknown + best_of_all(text.substr(1), scores, unknown));
  return best;
}

}  // namespace

TEST_CASE("a word is cut where the sum of scores is highest") {
  const boost::json::value model =
      unigram_json({{"<unk>", 0}, {"a", -2}, {"b", -2}, {"ab", -3}, {"abb", -9}, {"bb", -1}});
  const auto m = unigram_of(model);
  CHECK(cut_by(m, "ab") == ids{3});
  CHECK(cut_by(m, "abb") == ids{1, 5});
  CHECK(cut_by(m, "") == ids{});
}

TEST_CASE("what has no piece is unknown, a run of it once, or bytes where there are pieces for them") {
  auto model = unigram_json({{"<unk>", 0}, {"a", -2}, {"<0xC3>", 0}, {"<0xA9>", 0}, {"<0x7A>", 0}});
  CHECK(cut_by(unigram_of(boost::json::value(model)), "azéa") == ids{1, 0, 1});
  model["byte_fallback"] = true;
  const auto m = unigram_of(boost::json::value(model));
  CHECK(cut_by(m, "azéa") == ids{1, 4, 2, 3, 1});
  CHECK(cut_by(m, "zyz") == ids{0});  // one byte of the run has no piece
}

TEST_CASE("a control token's spelling in a text is not the token") {
  const boost::json::value model = unigram_json({{"<unk>", 0}, {"</s>", 0}, {"<", -3}, {"/", -3}});
  CHECK(cut_by(unigram_of(model), "</s>") == ids{1});
  CHECK(cut_by(unigram_of(model, {"</s>"}), "</s>") == ids{2, 3, 0});
  const auto t = parsed({{"added_tokens", {added(1, "</s>")}},
                         {"decoder", json(R"({"type":"Fuse"})")},
                         {"model", model}});
  CHECK(t->encode("</s>", {}) == ids{1});
  CHECK(t->encode("</s>", {.parse_special = false}) == ids{2, 3, 0});
}

TEST_CASE("the cut of random words has the best sum of all cuts") {
  std::mt19937_64 random(drawn_seed(31));
  for (int round = 0; round < 300; ++round) {
    std::map<std::string, double> scores;
    boost::json::array vocab{boost::json::array{"<unk>", 0.0}};
    std::vector<double> by_id{0};
    double lowest = 0;
    for (auto n = 1 + random() % 12; n > 0; --n) {
      std::string piece;
      for (auto k = 1 + random() % 4; k > 0; --k) piece.push_back("abc"[random() % 3]);
      const double score = -static_cast<double>(random() % 1000) / 64;
      if (!scores.emplace(piece, score).second) continue;
      vocab.push_back(boost::json::array{piece, score});
      by_id.push_back(score);
      lowest = std::min(lowest, score);
    }
    const boost::json::value model{{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}};
    const auto m = unigram_of(model);
    std::string word;
    for (auto k = random() % 10; k > 0; --k) word.push_back("abcd"[random() % 4]);
    // Each unknown character costs by itself, however many share a token.
    double sum = 0;
    std::size_t known = 0;
    for (const token_id id : cut_by(m, word)) {
      if (id == 0) continue;
      sum += by_id[static_cast<std::size_t>(id)];
      known += m.pieces().piece(id).size();
    }
    sum += static_cast<double>(word.size() - known) * (lowest - 10);
    INFO(boost::json::serialize(vocab) << " " << word);
    REQUIRE(sum == Approx(best_of_all(word, scores, lowest - 10)));
  }
}

TEST_CASE("a word twice as long is twice the work") {
  auto model = unigram_json({{"<unk>", 0}, {"a", -2}});
  const std::string longest(512, 'a');
  model["vocab"].as_array().push_back(boost::json::array{longest, -1.0});
  const auto m = unigram_of(boost::json::value(model));
  const auto looks = [&](std::size_t size) {
    free_turn t;
    CHECK(cut_by(m, std::string(size, 'a'), &t).size() == size / longest.size());
    return t.looks;
  };
  const int once = looks(20 * longest.size()), twice = looks(40 * longest.size());
  CHECK(once > 0);
  CHECK(twice <= 2 * once + 2);
}

TEST_CASE("a model of type Unigram that is wrong is refused with its field") {
  auto model = unigram_json({{"<unk>", 0}, {"a", -2}});
  const auto with = [&](const char* key, const boost::json::value& value) {
    auto changed = model;
    changed[key] = value;
    return unigram_complaint(changed);
  };
  CHECK(unigram_complaint(model).empty());
  CHECK(with("unk_id", 2).find("model.unk_id: must be an integer in [0, 1]") == 0);
  CHECK(with("unk_id", nullptr).find("model.unk_id: must be an integer") == 0);
  CHECK(with("vocab", json("[]")) == "model.vocab: has 0 pieces");
  CHECK(with("vocab", json(R"([["a",1],["b"]])")) == "model.vocab: [1] is not a piece and its score");
  CHECK(with("vocab", json(R"([["a","x"]])")) == "model.vocab: [0] is not a piece and its score");
  CHECK(with("vocab", boost::json::array{boost::json::array{std::string(513, 'a'), 1}}) ==
        "model.vocab: [0] has more than 512 bytes");
  CHECK(with("alpha", 0.1) == "model.alpha: sampling is not supported yet");
  CHECK(with("byte_fallback", 1) == "model.byte_fallback: must be true or false");
}

}  // namespace weir::tests::unigram_test
