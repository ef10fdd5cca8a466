#include "net/http/event_cursor.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace weir::tests::event_cursor_test {

using namespace weir::net;
using numbers = std::vector<std::uint32_t>;

TEST_CASE("event cursor: an id is read as it was written") {
  for (const numbers& n : {numbers{0}, numbers{12, 7, 0}, numbers{4294967295}, numbers(256, 9)}) {
    std::string event = "event: x\ndata: {}\n\n";
    append_event_id(event, [&](auto add) { std::ranges::for_each(n, add); });
    constexpr std::string_view before = "event: x\ndata: {}\nid: ";
    REQUIRE(event.starts_with(before));
    REQUIRE(event.ends_with("\n\n"));
    CHECK(parse_event_id(event.substr(before.size(), event.size() - before.size() - 2)) == n);
  }
}

TEST_CASE("event cursor: no other text is an id") {
  std::string too_many = "1";
  for (int i = 0; i < 256; ++i) too_many += ".1";
  for (const std::string& text :
       {std::string(), std::string("."), std::string("1."), std::string(".1"), std::string("1..2"),
        std::string("-1"), std::string("+1"), std::string(" 1"), std::string("1 "), std::string("1,2"),
        std::string("0x1"), std::string("1e3"), std::string("4294967296"), std::string("1\0", 2), too_many}) {
    CAPTURE(text);
    CHECK_FALSE(parse_event_id(text));
  }
}

}  // namespace weir::tests::event_cursor_test
