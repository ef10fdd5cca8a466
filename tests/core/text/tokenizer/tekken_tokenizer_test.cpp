// Mistral's tekken.json. Ids against tiktoken's library are in tokenizer_vectors_test.cpp.
#include "core/text/tokenizer/tekken_tokenizer.h"

#include <catch2/catch.hpp>

#include "tests/core/text/text_fixtures.h"
#include "tests/support/base64_text.h"

namespace weir::tests::tekken_tokenizer_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

using ids = std::vector<token_id>;

boost::json::object tekken_file() {
  boost::json::array vocab;
  const auto add = [&](const std::string& token) {
    vocab.push_back(boost::json::object{{"rank", vocab.size()}, {"token_bytes", to_base64(token)}});
  };
  for (int b = 0; b < 256; ++b) add(std::string(1, static_cast<char>(b)));
  for (const char* token : {"ab", " a", "beyond the model"}) add(token);
  return {{"config", json(R"({"pattern":" ?\\p{L}+|\\s+|[^\\s\\p{L}]+","default_vocab_size":263,
                              "default_num_special_tokens":5,"version":"v7"})")},
          {"vocab", std::move(vocab)},
          {"special_tokens", json(R"([{"rank":0,"token_str":"<unk>","is_control":true},
              {"rank":1,"token_str":"<s>","is_control":true},
              {"rank":4,"token_str":"[CALL]","is_control":false}])")}};
}

struct tekken_folder {
  temporary_dir dir;
  explicit tekken_folder(const boost::json::object& file) {
    write_file(dir / "tekken.json", boost::json::serialize(file));
  }
  std::string complaint() const {
    const auto t = load_tokenizer(dir.path().string());
    return t ? "" : t.error().message.substr(dir.path().string().size() + 1);
  }
};

std::string tekken_complaint(const boost::json::object& file) { return tekken_folder(file).complaint(); }

}  // namespace

TEST_CASE("tekken's ids are ranks behind the special tokens, and a text begins with BOS") {
  const tekken_folder f(tekken_file());
  const auto t = load_tokenizer(f.dir.path().string()).value();
  CHECK(t->encode("ab a", {}) == ids{1, 261, 262});
  CHECK(t->encode("[CALL]<SPECIAL_3>b", {.add_special = false}) == ids{4, 3, 5 + 'b'});
  CHECK(t->bos() == 1);
  CHECK(t->adds_bos());
  CHECK(t->is_special(3));
  CHECK_FALSE(t->is_special(4));
  CHECK(t->vocab_size() == 263);
  CHECK(t->token_bytes(262) == " a");
  CHECK(t->piece(2) == "<SPECIAL_2>");
  CHECK(t->decode(t->encode("ab é", {.add_special = false}), {}) == "ab é");
}

TEST_CASE("a tekken.json that is wrong or too old is refused with the field") {
  auto file = tekken_file();
  CHECK(tekken_complaint(file).empty());
  file.erase("special_tokens");
  CHECK(tekken_complaint(file) == "tekken.json: a file without 'special_tokens' is not supported yet");
  file = tekken_file();
  file["special_tokens"].as_array()[1].as_object()["token_str"] = "x";
  CHECK(tekken_complaint(file) == "tekken.json.special_tokens: has no \"<s>\"");
  file = tekken_file();
  file["special_tokens"].as_array()[1].as_object()["rank"] = 5;
  CHECK_THAT(tekken_complaint(file),
             Contains("tekken.json.special_tokens[1].rank: must be an integer in [0, 4]"));
  file = tekken_file();
  file["vocab"].as_array()[7].as_object()["rank"] = 8;
  CHECK(tekken_complaint(file) == "tekken.json.vocab[7].rank: must be 7");
  file = tekken_file();
  file["vocab"].as_array()[7].as_object()["token_bytes"] = "?";
  CHECK(tekken_complaint(file) == "tekken.json.vocab[7]: its token is not base64");
  file = tekken_file();
  file["config"].as_object()["default_vocab_size"] = 300;
  CHECK(tekken_complaint(file) == "tekken.json.vocab: has 259 tokens, and 'default_vocab_size' asks for 295");
  file = tekken_file();
  file["config"].as_object()["default_vocab_size"] = 100;
  CHECK(tekken_complaint(file) == "tekken.json: byte 0x5F is no token");
  file = tekken_file();
  file["config"].as_object()["pattern"] = "(";
  CHECK_THAT(tekken_complaint(file), Contains("not a pattern"));
}

}  // namespace weir::tests::tekken_tokenizer_test
