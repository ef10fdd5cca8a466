#include "net/protocol/body_parts.h"

#include <catch2/catch.hpp>

#include "net/protocol/json.h"

namespace weir::tests::body_parts_test {

using net::body_parts;

namespace {

body_parts numbers(std::size_t count) {
  body_parts b;
  b.add("[");
  b.add(count, [](std::string& out, std::size_t i) { out += (i ? "," : "") + std::to_string(i); });
  b.add("]");
  return b;
}

}  // namespace

TEST_CASE("body parts: the pieces add up to the text, whatever their size") {
  std::string whole;
  CHECK_FALSE(numbers(100).append(whole, 1 << 20));
  CHECK(whole.starts_with("[0,1,2,"));
  CHECK(whole.ends_with(",98,99]"));
  for (const std::size_t most : {0, 1, 7, 64}) {
    CAPTURE(most);
    body_parts b = numbers(100);
    std::string all, piece;
    std::size_t pieces = 0;
    for (bool more = true; more; ++pieces) {
      piece.clear();
      more = b.append(piece, most);
      CHECK(piece.size() < most + 5);
      all += piece;
    }
    CHECK(all == whole);
    CHECK(pieces > 1);
  }
}

TEST_CASE("body parts: a body without an item is one piece") {
  std::string out;
  CHECK_FALSE(numbers(0).append(out, 0));
  CHECK(out == "[]");
}

TEST_CASE("body parts: a long text is cut anywhere and is the same text") {
  std::string text;
  for (int i = 0; i < 9000; ++i) text += i % 3 ? "\n\"x" : "é";
  body_parts b;
  b.add("\"");
  b.add_json_text(text);
  b.add("\"");
  std::string out, expected;
  std::size_t pieces = 1;
  while (b.append(out, 1)) ++pieces;
  net::append_json_string(expected, text);
  CHECK(out == expected);
  CHECK(pieces > 2);
}

}  // namespace weir::tests::body_parts_test
