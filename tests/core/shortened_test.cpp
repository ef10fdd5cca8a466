// Text from outside in messages and in a log.
#include "core/shortened.h"

#include <catch2/catch.hpp>

namespace weir::tests::shortened_test {

using core::one_line;

TEST_CASE("what may stand in a line of a log stands there as it is") {
  for (const char* text : {"", "plain", "a=b \"c\" \\n", "«ünïcödé» 水 😀"}) CHECK(one_line(text) == text);
}

TEST_CASE("nothing from outside ends a line, moves a terminal's cursor or turns its text around") {
  CHECK(one_line("a\nb\r\tc") == "a\\nb\\x0d\\x09c");
  CHECK(one_line("\x1b[2Jgone\x7f") == "\\x1b[2Jgone\\x7f");
  CHECK(one_line("\xc2\x9b"
                 "2J") == "\\u{9b}2J");  // a control character beyond ASCII
  CHECK(one_line("x\xe2\x80\xa8y\xe2\x80\xa9") == "x\\u{2028}y\\u{2029}");  // separators of lines
  CHECK(one_line("\xe2\x80\xae"
                 "evil") == "\\u{202e}evil");  // right to left
  CHECK(one_line(std::string_view("\0", 1)) == "\\x00");
}

TEST_CASE("bytes that are not UTF-8 are shown as bytes, one by one") {
  CHECK(one_line("\xff\xc3(") == "\\xff\\xc3(");
  CHECK(one_line("cut \xe6\xb0") == "cut \\xe6\\xb0");
  CHECK(one_line("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a surrogate pair
}

}  // namespace weir::tests::shortened_test
