// What load_tokenizer() and parse_tokenizer() promise: files in, a tokenizer or an error with a name out.
#include <catch2/catch.hpp>

#include "tests/core/text/text_fixtures.h"

namespace weir::tests::tokenizer_json_test {

using namespace weir::core;

namespace {

using ids = std::vector<token_id>;

std::string complaint(const boost::json::object& file, const std::string& config = "") {
  const auto t = parse_tokenizer(boost::json::serialize(file), config);
  return t ? "" : t.error().message;
}

}  // namespace

TEST_CASE("a small byte-level tokenizer encodes and decodes") {
  const auto t = parsed(byte_level_file());
  CHECK(t->encode("hello hello", {}) == ids{259, 260});
  CHECK(t->encode("hé", {}) == ids{'h', 0xC3, 0xA9});
  CHECK(t->decode(ids{259, 260}, {}) == "hello hello");
  CHECK(t->piece(260) == "Ġhello");
  CHECK(t->token_bytes(260) == " hello");
  CHECK(t->vocab_size() == 263);
  CHECK(t->id_of("<|im_end|>") == im_end);
  CHECK(t->id_of("nothing") == std::nullopt);
  CHECK_FALSE(t->bos());
}

TEST_CASE("control tokens in a text are tokens, or plain text where the text is a user's") {
  const auto t = parsed(byte_level_file());
  CHECK(t->encode("<|im_end|>", {}) == ids{im_end});
  const auto plain = t->encode("a<|im_end|>", {.parse_special = false});
  CHECK(plain.size() == 11);
  CHECK(t->decode(plain, {}) == "a<|im_end|>");
}

TEST_CASE("parts are one text, whose control tokens are those of its control parts") {
  const auto t = parsed(byte_level_file());
  const tokenizer::part parts[] = {{"<|im_start|>he", true}, {"llo<|im_end|>", false}, {"<|im_end|>", true}};
  const auto all = t->encode_parts(parts);
  CHECK(all.front() == im_start);
  CHECK(all[1] == *t->id_of("hello"));
  CHECK(all.back() == im_end);
  CHECK(std::count(all.begin(), all.end(), im_end) == 1);
  CHECK(t->decode(all, {}) == "<|im_start|>hello<|im_end|><|im_end|>");
}

TEST_CASE("broken UTF-8 is encoded as the replacement character") {
  const auto t = parsed(byte_level_file());
  CHECK(t->encode("a\xFF", {}) == t->encode("a\uFFFD", {}));
  const tokenizer::part parts[] = {{"a\xFF", false}};
  CHECK(t->encode_parts(parts) == t->encode("a\uFFFD", {}));
}

TEST_CASE(
    "a text whose first characters a normaliser removed is no start for a Metaspace of the first word") {
  auto file = byte_fallback_file();
  file["pre_tokenizer"] = json(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first"})");
  file["post_processor"] = nullptr;
  const auto with = [&](const char* step, const char* text) {
    file["normalizer"] = json(step);
    const auto t = parsed(file);
    return t->decode(t->encode(text, {}), {}).size() == 1 ? t->piece(t->encode(text, {})[0]) : "several";
  };
  constexpr const char* strip = R"({"type":"Strip","strip_left":true,"strip_right":true})";
  CHECK(with(strip, "a") == "▁a");
  CHECK(with(strip, " a") == "a");
  CHECK(with(R"({"type":"Nmt"})",
             "\x01"
             "a") == "a");
  CHECK(with(R"({"type":"StripAccents"})", "\u0301a") == "a");
  CHECK(with(R"({"type":"Replace","pattern":{"Regex":"^ +"},"content":""})", "  a") == "a");
  CHECK(with(R"({"type":"Replace","pattern":{"String":"b"},"content":""})", "ab") == "▁a");
  CHECK(with(R"({"type":"Replace","pattern":{"String":"b"},"content":"a"})", "b") == "▁a");
}

TEST_CASE("BOS is what the configuration names, as text or as an object") {
  CHECK(parsed(byte_fallback_file(), R"({"bos_token":"<s>"})")->bos() == 1);
  CHECK(parsed(byte_fallback_file(), R"({"bos_token":{"content":"<s>"}})")->bos() == 1);
  CHECK_FALSE(parsed(byte_fallback_file(), R"({"bos_token":null})")->bos());
  CHECK(parsed(byte_fallback_file(), R"({"bos_token":"<s>"})")->adds_bos());
  CHECK_FALSE(parsed(byte_level_file(), R"({"bos_token":"<|im_start|>"})")->adds_bos());
  CHECK(parsed(byte_fallback_file())->encode("a", {}) == ids{1, *parsed(byte_fallback_file())->id_of("▁a")});
}

TEST_CASE("spaces are cleaned up unless the configuration says no") {
  CHECK(parsed(byte_level_file())->clean_up_spaces());
  CHECK(parsed(byte_level_file(), "{}")->clean_up_spaces());
  const auto t = parsed(byte_level_file(), R"({"clean_up_tokenization_spaces":false})");
  CHECK_FALSE(t->clean_up_spaces());
  CHECK(t->decode(ids{'a', ' ', '.'}, {.clean_up_spaces = true}) == "a.");
  CHECK(t->decode(ids{'a', ' ', '.'}, {}) == "a .");
}

TEST_CASE("what is wrong with a file is named with its field") {
  auto file = byte_level_file();
  file["model"].as_object()["type"] = "WordPiece";
  CHECK(complaint(file) == "tokenizer.json.model: model 'WordPiece' is not supported yet");
  file = byte_level_file();
  file["pre_tokenizer"] = json(R"({"type":"Sequence","pretokenizers":[{"type":"Odd"}]})");
  CHECK(complaint(file) ==
        "tokenizer.json.pre_tokenizer.pretokenizers[0]: pre-tokenizer 'Odd' is not supported yet");
  file = byte_level_file();
  file["added_tokens"].as_array()[1].as_object()["id"] = "x";
  CHECK(complaint(file).find("tokenizer.json.added_tokens[1].id: must be an integer") == 0);
  file = byte_fallback_file();
  file["post_processor"].as_object()["special_tokens"] = json(R"({"<s>":{"ids":[5000]}})");
  CHECK(complaint(file).find("tokenizer.json.post_processor: names an id outside") == 0);
  CHECK(complaint(byte_level_file(), "{").find("tokenizer_config.json: not JSON") == 0);
  CHECK(complaint(byte_level_file(), R"({"bos_token":3})").find("tokenizer_config.json.bos_token") == 0);
  CHECK(parse_tokenizer("[]", "").has_error());
  CHECK(parse_tokenizer("", "").has_error());
}

TEST_CASE("a directory needs tokenizer.json alone, and special_tokens_map.json can name BOS") {
  weir::tests::temporary_dir dir;
  const auto missing = load_tokenizer(dir.path().string());
  REQUIRE(missing.has_error());
  CHECK(missing.error().message.find("tokenizer.json: no such file") != std::string::npos);
  weir::tests::write_file(dir / "tokenizer.json", boost::json::serialize(byte_fallback_file()));
  REQUIRE(load_tokenizer(dir.path().string()).has_value());
  CHECK_FALSE((*load_tokenizer(dir.path().string()))->bos());
  weir::tests::write_file(dir / "special_tokens_map.json", R"({"bos_token":"<s>"})");
  CHECK((*load_tokenizer(dir.path().string()))->bos() == 1);
  weir::tests::write_file(dir / "tokenizer_config.json", R"({"bos_token":null})");
  CHECK_FALSE((*load_tokenizer(dir.path().string()))->bos());
}

}  // namespace weir::tests::tokenizer_json_test
