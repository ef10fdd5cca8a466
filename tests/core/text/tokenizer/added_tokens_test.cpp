#include "core/text/tokenizer/added_tokens.h"

#include "tests/core/text/text_fixtures.h"

namespace weir::tests::added_tokens_test {

using namespace weir::core;

namespace {

constexpr auto raw = added_tokens::stage::raw;

// The pieces of a cut text: "[id:text]" for a token, "text|" for what lies between.
std::string cut(const boost::json::value& tokens, std::string_view text,
                const std::vector<span_of_text>& plain = {}) {
  const added_tokens t(json_field(tokens, "added_tokens"), normalizer(std::nullopt));
  std::string out;
  for (const auto& s : t.cut(raw, text, plain)) {
    out += s.id ? fmt::format("[{}:{}]", *s.id, s.at.of(text)) : std::string(s.at.of(text)) + "|";
  }
  return out;
}

boost::json::value one(const char* flags) {
  return json(fmt::format(R"([{{"id":7,"content":"<m>","special":true,"normalized":false{}}}])", flags));
}

}  // namespace

TEST_CASE("the leftmost token is found, and of those the longest") {
  const boost::json::value tokens{added(1, "<s>"), added(2, "<s>x"), added(3, "s>xyz"), added(4, "<")};
  CHECK(cut(tokens, "a<s>b") == "a|[1:<s>]b|");
  CHECK(cut(tokens, "<s>xyz") == "[2:<s>x]yz|");
  CHECK(cut(tokens, "<s") == "[4:<]s|");
  CHECK(cut(tokens, "").empty());
}

TEST_CASE("a token takes the white space at the sides that it says") {
  CHECK(cut(one(R"(,"lstrip":true)"), "a \n<m> b") == "a|[7: \n<m>] b|");
  CHECK(cut(one(R"(,"rstrip":true)"), "a <m> \u3000b") == "a |[7:<m> \u3000]b|");
  CHECK(cut(one(R"(,"lstrip":true,"rstrip":true)"), "<m> <m>") == "[7:<m> ][7:<m>]");
}

TEST_CASE("a single word is not found inside of one") {
  const auto tokens =
      json(R"([{"id":7,"content":"ing","single_word":true,"special":true,"normalized":false}])");
  CHECK(cut(tokens, "sing") == "sing|");
  CHECK(cut(tokens, "ingé") == "ingé|");
  CHECK(cut(tokens, "s ing.") == "s |[7:ing].|");
}

TEST_CASE("special tokens are not read from plain text, others are") {
  const boost::json::value tokens{added(1, "<s>"), added(2, "<tool>", false)};
  CHECK(cut(tokens, "<s><tool>", {{0, 9}}) == "<s>|[2:<tool>]");
  CHECK(cut(tokens, "<s>a<s>", {{3, 7}}) == "[1:<s>]a<s>|");
  CHECK(cut(tokens, "<s>a<s>", {{2, 3}}) == "<s>a|[1:<s>]");
}

TEST_CASE("normalized tokens are found in normalized text in their normalized spelling") {
  auto file = byte_fallback_file();
  file["added_tokens"].as_array().push_back(
      json(R"({"id":300,"content":"x y","special":false,"normalized":true})"));
  const auto t = parsed(file);
  CHECK(t->encode("ax y", {.add_special = false}) !=
        std::vector<token_id>{260, 300});  // "▁x▁y" is not in "▁ax▁y"
  CHECK(t->encode("x y", {.add_special = false}) == std::vector<token_id>{300});
}

TEST_CASE("an added token of hundreds of bytes is refused, since every place of a text is compared with it") {
  const auto fine = [](std::size_t bytes) {
    const boost::json::value tokens{added(1, std::string(bytes, 'a'))};
    try {
      added_tokens(json_field(tokens, "added_tokens"), normalizer(std::nullopt));
    } catch (const refusal&) {
      return false;
    }
    return true;
  };
  CHECK(fine(256));
  CHECK_FALSE(fine(257));
}

}  // namespace weir::tests::added_tokens_test
