// What a terminal, or a line of a log, may be shown of words from outside.
#include "core/visible.h"

#include <catch2/catch.hpp>

namespace weir::tests::visible_test {

using core::one_line;
using core::visible;

TEST_CASE("visible: text stays as it is, with its lines and tabs") {
  CHECK(visible("").empty());
  CHECK(visible("two\nlines\tand é 한 🌊 \u202Eabc") == "two\nlines\tand é 한 🌊 \u202Eabc");
}

TEST_CASE("visible: what commands a terminal is shown as text") {
  CHECK(visible("\x1b]52;c;ZXZpbA==\a") == "\\u001b]52;c;ZXZpbA==\\u0007");  // clipboard
  CHECK(visible("\x1b]0;title\x1b\\") == "\\u001b]0;title\\u001b\\");
  CHECK(visible("\x1b[2J\x1b[H") == "\\u001b[2J\\u001b[H");  // clears the screen
  CHECK(visible("safe\rrm") == "safe\\u000drm");
  CHECK(visible("\xC2\x9B"
                "2J\x7F") == "\\u009b2J\\u007f");  // the same in one character of C1
  CHECK(visible("\x9B"
                "2J") == "\\x9b2J");  // and in one byte
  CHECK(visible("cut \xE2\x82") == "cut \\xe2\\x82");
}

TEST_CASE("visible: no byte reaches a terminal as a control, whatever the text") {
  std::string all;
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) all += static_cast<char>(a), all += static_cast<char>(b);
  const auto shown = visible(all);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto c = static_cast<unsigned char>(shown[i]);
    REQUIRE((c >= 0x20 || c == '\n' || c == '\t'));
    REQUIRE(c != 0x7F);
    if (c == 0xC2) REQUIRE(static_cast<unsigned char>(shown[i + 1]) >= 0xA0);
  }
}

TEST_CASE("one_line: what may stand in a line of a log stands there as it is") {
  for (const char* text : {"", "plain", "a=b \"c\" \\n", "«ünïcödé» 水 😀"}) CHECK(one_line(text) == text);
}

TEST_CASE("one_line: nothing from outside ends a line, moves a terminal's cursor or turns its text around") {
  CHECK(one_line("a\nb\r\tc") == "a\\nb\\x0d\\x09c");
  CHECK(one_line("\x1b[2Jgone\x7f") == "\\x1b[2Jgone\\x7f");
  CHECK(one_line("\xc2\x9b"
                 "2J") == "\\u{9b}2J");  // a control character beyond ASCII
  CHECK(one_line("x\xe2\x80\xa8y\xe2\x80\xa9") == "x\\u{2028}y\\u{2029}");  // separators of lines
  CHECK(one_line("\xe2\x80\xae"
                 "evil") == "\\u{202e}evil");  // right to left
  CHECK(one_line(std::string_view("\0", 1)) == "\\x00");
}

TEST_CASE("one_line: bytes that are not UTF-8 are shown as bytes, one by one") {
  CHECK(one_line("\xff\xc3(") == "\\xff\\xc3(");
  CHECK(one_line("cut \xe6\xb0") == "cut \\xe6\\xb0");
  CHECK(one_line("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a surrogate pair
}

}  // namespace weir::tests::visible_test
