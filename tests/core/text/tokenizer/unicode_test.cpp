#include "core/text/tokenizer/unicode.h"

#include <catch2/catch.hpp>

namespace weir::tests::unicode_test {

using namespace weir::core;
using kind = utf8_step::kind;

namespace {

void check_step(std::string_view bytes, kind what, std::size_t size) {
  INFO(bytes.size() << " bytes, the first " << static_cast<int>(static_cast<unsigned char>(bytes[0])));
  CHECK(next_utf8(bytes).what == what);
  CHECK(next_utf8(bytes).size == size);
}

}  // namespace

TEST_CASE("a step of UTF-8 is a whole character, a broken sequence or a cut one") {
  check_step("a", kind::whole, 1);
  check_step("é!", kind::whole, 2);
  check_step("漢", kind::whole, 3);
  check_step("🍓", kind::whole, 4);
  check_step("\xF0\x9F\x8D", kind::cut, 3);
  check_step("\xE6", kind::cut, 1);
  check_step("\xF0\x9F\x8D!", kind::broken, 3);
  check_step("\x80", kind::broken, 1);
  check_step("\xFF", kind::broken, 1);
}

TEST_CASE("overlong forms, surrogates and what lies past U+10FFFF are broken at once") {
  check_step("\xC0\x80", kind::broken, 1);
  check_step("\xE0\x80\x80", kind::broken, 1);
  check_step("\xED\xA0\x80", kind::broken, 1);
  check_step("\xF0\x80\x80\x80", kind::broken, 1);
  check_step("\xF4\x90\x80\x80", kind::broken, 1);
  check_step("\xF5\x80\x80\x80", kind::broken, 1);
}

TEST_CASE("repaired text has one replacement character for each broken sequence") {
  CHECK(to_valid_utf8("a\xE6\xBC z\xFF\xFE") == "a\uFFFD z\uFFFD\uFFFD");
  CHECK(to_valid_utf8("\xED\xA0\x80") == "\uFFFD\uFFFD\uFFFD");
  CHECK(to_valid_utf8("naïve 漢字") == "naïve 漢字");
  CHECK_FALSE(is_valid_utf8("a\xE6\xBC"));
  CHECK(is_valid_utf8("naïve 漢字 🍓"));
}

TEST_CASE("every character survives being written and taken off again") {
  for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 97) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    REQUIRE(is_valid_utf8(text));
    REQUIRE(character_size(text[0]) == text.size());
    std::string_view rest = text;
    REQUIRE(take_character(rest) == c);
    REQUIRE(rest.empty());
  }
}

TEST_CASE("character classes follow Unicode, not ASCII and not JavaScript") {
  CHECK(is_whitespace(U'\u0085'));
  CHECK(is_whitespace(U'\u3000'));
  CHECK_FALSE(is_whitespace(U'\uFEFF'));
  CHECK_FALSE(is_whitespace(U'\u180E'));
  CHECK(is_numeric(U'½'));
  CHECK(is_numeric(U'Ⅷ'));
  CHECK(is_numeric(U'٣'));
  CHECK_FALSE(is_numeric(U'a'));
  CHECK(is_punctuation(U'$'));
  CHECK(is_punctuation(U'。'));
  CHECK_FALSE(is_punctuation(U'€'));
  CHECK(is_word(U'_'));
  CHECK(is_word(U'é'));
  CHECK(is_word(U'\u0301'));
  CHECK_FALSE(is_word(U'½'));
  CHECK(is_mark(U'\u0301'));
  CHECK_FALSE(is_mark(U'a'));
}

}  // namespace weir::tests::unicode_test
