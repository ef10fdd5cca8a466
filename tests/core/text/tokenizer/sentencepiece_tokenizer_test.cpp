// Files of SentencePiece: what is refused, and what the files beside one add. Ids against the library's are
// in tokenizer_vectors_test.cpp.
#include "core/text/tokenizer/sentencepiece_tokenizer.h"

#include <catch2/catch.hpp>

#include "core/text/tokenizer/sentencepiece_model.h"
#include "tests/core/text/text_fixtures.h"
#include "tests/support/charsmap_bytes.h"
#include "tests/support/protobuf_bytes.h"

namespace weir::tests::sentencepiece_tokenizer_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

using ids = std::vector<token_id>;

// <unk> <s> </s> ▁ a b ab ▁ab c, of type BPE.
std::string pieces_file() {
  return proto_piece("<unk>", 0, 2) + proto_piece("<s>", 0, 3) + proto_piece("</s>", 0, 3) +
         proto_piece("\u2581", -5) + proto_piece("a", -6) + proto_piece("b", -7) + proto_piece("ab", -2) +
         proto_piece("\u2581ab", -3) + proto_piece("c", -8) + proto_kind(2) + proto_spaces(true, false);
}

struct model_folder {
  temporary_dir dir;
  explicit model_folder(const std::string& model = pieces_file(), const std::string& config = "") {
    write_file(dir / "tokenizer.model", model);
    if (!config.empty()) write_file(dir / "tokenizer_config.json", config);
  }
  std::shared_ptr<const tokenizer> load() const {
    const auto t = load_tokenizer(dir.path().string());
    if (!t) throw std::runtime_error(t.error().message);
    return *t;
  }
  // The message without the directory's name.
  std::string complaint() const {
    const auto t = load_tokenizer(dir.path().string());
    return t ? "" : t.error().message.substr(dir.path().string().size() + 1);
  }
};

std::string model_complaint(const std::string& model) { return model_folder(model).complaint(); }
std::string config_complaint(const std::string& config) {
  return model_folder(pieces_file(), config).complaint();
}

}  // namespace

TEST_CASE("a directory without tokenizer.json has the tokenizer of its tokenizer.model") {
  const model_folder f;
  const auto t = f.load();
  CHECK(t->encode("ab c", {}) == ids{1, 7, 3, 8});
  CHECK(t->encode("ab", {.add_special = false}) == ids{7});
  CHECK(t->decode(ids{7, 3, 8}, {}) == "ab c");
  CHECK(t->bos() == 1);
  CHECK(t->adds_bos());
  CHECK(t->is_special(0));
  CHECK(t->is_special(2));
  CHECK_FALSE(t->clean_up_spaces());
  CHECK(t->encode("</s>", {.add_special = false}) == ids{2});
  const auto plain = t->encode("</s>", {.add_special = false, .parse_special = false});
  CHECK(plain == ids{3, 0});
  write_file(f.dir / "tokenizer.json", boost::json::serialize(byte_level_file()));
  CHECK(f.load()->vocab_size() == 263);
}

TEST_CASE("tokenizer_config.json says what stands around a text and whether a text goes on behind a token") {
  const auto with = [](const std::string& config) { return model_folder(pieces_file(), config).load(); };
  CHECK(with(R"({"add_bos_token":false})")->encode("ab", {}) == ids{7});
  CHECK(with(R"({"add_eos_token":true})")->encode("ab", {}) == ids{1, 7, 2});
  CHECK(with(R"({"bos_token":null})")->encode("ab", {}) == ids{7});
  CHECK(with(R"({"bos_token":{"content":"</s>"}})")->encode("ab", {}) == ids{2, 7});
  CHECK(with(R"({})")->encode("ab<s>ab", {.add_special = false}) == ids{7, 1, 7});
  CHECK(with(R"({"legacy":false})")->encode("ab<s>ab", {.add_special = false}) == ids{7, 1, 6});
  CHECK(with(R"({"legacy":false})")->encode("<s>ab", {.add_special = false}) == ids{1, 6});
  CHECK(with(R"({"tokenizer_class":"CodeLlamaTokenizer"})")->encode("<s>ab", {.add_special = false}) ==
        ids{1, 6});
  const auto without = with(R"({"add_prefix_space":false})");
  CHECK(without->encode("ab", {.add_special = false}) == ids{6});
  CHECK(without->decode(ids{7}, {}) == " ab");
  CHECK(with(R"({"clean_up_tokenization_spaces":true})")->clean_up_spaces());
}

TEST_CASE("tokens that the files beside a model add are cut out of a text") {
  const std::string added = R"({"added_tokens_decoder":{
      "9":{"content":"<|im_end|>","special":true},"10":{"content":"tool","special":false,"normalized":true}},
      "additional_special_tokens":["c"]})";
  const auto t = model_folder(pieces_file(), added).load();
  CHECK(t->encode("ab<|im_end|>", {.add_special = false}) == ids{7, 9});
  CHECK(t->encode("tool", {.parse_special = false}) == ids{1, 10});
  CHECK(t->is_special(9));
  CHECK_FALSE(t->is_special(10));
  CHECK(t->is_special(8));  // a piece that is named as a special token
  CHECK(t->vocab_size() == 11);
  CHECK(t->piece(9) == "<|im_end|>");

  const model_folder older;
  write_file(older.dir / "added_tokens.json", R"({"<pad>":9,"x y":11})");
  write_file(older.dir / "special_tokens_map.json", R"({"pad_token":{"content":"<pad>"}})");
  const auto u = older.load();
  CHECK(u->is_special(9));
  CHECK_FALSE(u->is_special(11));
  CHECK(u->encode("x y", {.add_special = false}) == ids{11});
  write_file(older.dir / "tokenizer_config.json", R"({"added_tokens_decoder":{}})");
  CHECK(older.load()->vocab_size() == 9);  // a list in tokenizer_config.json is the whole list
}

TEST_CASE("a Unigram model takes the best cut, and its user-defined pieces always") {
  const std::string file = proto_piece("<unk>", 0, 2) + proto_piece("\u2581", -2) + proto_piece("a", -3) +
                           proto_piece("b", -3) + proto_piece("ab", -5) + proto_piece("ba", 0, 4) +
                           proto_kind(1) + proto_spaces(true, true);
  const auto t = model_folder(file).load();
  CHECK(t->encode("ab", {}) == ids{1, 4});
  CHECK(t->encode(" aba ", {}) == ids{1, 2, 5});
  CHECK(t->encode("xyza", {}) == ids{1, 0, 2});
  CHECK(t->decode(t->encode("  b  a ", {}), {}) == "b a");
}

TEST_CASE("the table of a model replaces, and unused pieces come in no text") {
  const std::string table = charsmap_writer{{"A", "a"}}.table();
  const std::string file = proto_piece("<unk>", 0, 2) + proto_piece("a", -3) + proto_piece("aa", -1, 5) +
                           proto_kind(1) +
                           proto_bytes(3, proto_bytes(2, table) + proto_number(3, 0) + proto_number(4, 0));
  CHECK(model_folder(file).load()->encode("aAa", {}) == ids{1, 1, 1});
}

TEST_CASE("a class of tokenizers that is not known is refused by name") {
  CHECK(config_complaint(R"({"tokenizer_class":"T5Tokenizer"})") ==
        "tokenizer_config.json.tokenizer_class: 'T5Tokenizer' with tokenizer.model is not supported yet");
  CHECK(config_complaint(R"({"auto_map":{"AutoTokenizer":["tokenization_x.OddTokenizer",null]}})") ==
        "tokenizer_config.json.tokenizer_class: 'OddTokenizer' with tokenizer.model is not supported yet");
  CHECK(config_complaint(R"({"auto_map":{"AutoTokenizer":["tokenization_baichuan.BaichuanTokenizer",null]}})")
            .empty());
}

TEST_CASE("what is wrong beside a model is named with its file and field") {
  CHECK_THAT(config_complaint("{"), Contains("tokenizer_config.json: not JSON"));
  CHECK(config_complaint(R"({"legacy":1})") == "tokenizer_config.json.legacy: must be true or false");
  CHECK(config_complaint(R"({"tokenizer_class":1})") ==
        "tokenizer_config.json.tokenizer_class: must be a string");
  CHECK(config_complaint(R"({"add_eos_token":true,"eos_token":"none"})") ==
        "tokenizer_config.json.add_eos_token: there is no such token");
  CHECK(config_complaint(R"({"added_tokens_decoder":{"x":{"content":"y"}}})") ==
        "tokenizer_config.json.added_tokens_decoder: 'x' is not an id in [0, 16777215]");
  CHECK(config_complaint(R"({"added_tokens_decoder":{"99999999":{"content":"y"}}})") ==
        "tokenizer_config.json.added_tokens_decoder: '99999999' is not an id in [0, 16777215]");
  CHECK(config_complaint(R"({"added_tokens_decoder":{"9":{"content":"y"},"09":{"content":"z"}}})") ==
        "tokenizer_config.json: id 9 has two tokens");
  CHECK(config_complaint(R"({"added_tokens_decoder":{"9":{}}})") ==
        "tokenizer_config.json.added_tokens_decoder.9: 'content' is missing");
  const model_folder f;
  write_file(f.dir / "added_tokens.json", R"({"a":-1})");
  CHECK(f.complaint() == "added_tokens.json.a: must be an integer in [0, 16777215]");
}

TEST_CASE("a model that is wrong or not known is refused with the field") {
  const std::string good = pieces_file();
  CHECK(model_complaint(good).empty());
  CHECK(model_complaint("") == "tokenizer.model.pieces: none is unknown");
  CHECK(model_complaint("hello") == "tokenizer.model: not protobuf: a field of kind 4");
  CHECK(model_complaint(good.substr(0, good.size() - 1)) ==
        "tokenizer.model: not protobuf: a field goes beyond the end");
  CHECK(model_complaint(good + proto_piece("ab", 0)) == "tokenizer.model.pieces[9]: is there twice");
  CHECK(model_complaint(good + proto_piece("x", 0, 2)) ==
        "tokenizer.model.pieces[9]: is a second unknown piece");
  CHECK(model_complaint(good + proto_piece("", 0)) == "tokenizer.model.pieces[9].piece: is empty");
  CHECK(model_complaint(good + proto_piece("\xFF", 0)) == "tokenizer.model.pieces[9].piece: is not UTF-8");
  CHECK(model_complaint(good + proto_piece(std::string(513, 'x'), 0)) ==
        "tokenizer.model.pieces[9].piece: has more than 512 bytes");
  CHECK(model_complaint(good + proto_piece("x", 0, 7)) == "tokenizer.model.pieces[9].type: is 7");
  CHECK(model_complaint(good + proto_piece("x", NAN)) == "tokenizer.model.pieces[9].score: is not finite");
  CHECK(model_complaint(good + proto_piece("<0x0a>", 0, 6)) ==
        "tokenizer.model.pieces[9]: is a byte, and is not spelled like <0x0A>");
  CHECK(model_complaint(good + proto_bytes(2, proto_number(35, 1))) ==
        "tokenizer.model.trainer_spec.byte_fallback: is true, and 0 pieces are bytes");
  CHECK(model_complaint(good + proto_kind(3)) ==
        "tokenizer.model.trainer_spec.model_type: WORD is not supported yet");
  CHECK(model_complaint(good + proto_kind(4)) ==
        "tokenizer.model.trainer_spec.model_type: CHAR is not supported yet");
  CHECK(model_complaint(good + proto_kind(9)) == "tokenizer.model.trainer_spec.model_type: is 9");
  CHECK(model_complaint(good + proto_bytes(2, proto_number(24, 1))) ==
        "tokenizer.model.trainer_spec: treat_whitespace_as_suffix is not supported yet");
  CHECK(model_complaint(good + proto_bytes(3, proto_number(5, 0))) ==
        "tokenizer.model.normalizer_spec: escape_whitespaces false is not supported yet");
  CHECK(model_complaint(good + proto_bytes(5, proto_bytes(2, "x"))) ==
        "tokenizer.model.denormalizer_spec: a table of replacements is not supported yet");
  CHECK_THAT(model_complaint(good + proto_bytes(3, proto_bytes(2, "x"))),
             Contains("tokenizer.model.normalizer_spec.precompiled_charsmap: its first four bytes"));
  const std::string grows = charsmap_writer{{"a", std::string(40, 'x')}}.table();
  CHECK(model_complaint(good + proto_bytes(3, proto_bytes(2, grows))) ==
        "tokenizer.model.normalizer_spec.precompiled_charsmap: makes a text more than 32 times as long");
}

TEST_CASE("a directory with another vocabulary alone is refused with its name") {
  const temporary_dir dir;
  write_file(dir / "tokenizer.model.v3", "{}");
  const auto t = load_tokenizer(dir.path().string());
  REQUIRE(!t);
  CHECK(t.error().code == errc::not_supported);
  CHECK_THAT(t.error().message,
             Contains("tokenizer.json: no such file; tokenizer.model.v3 is not supported yet"));
}

}  // namespace weir::tests::sentencepiece_tokenizer_test
