// What a hostile server can make a reader of server-sent events keep.
#include <catch2/catch.hpp>
#include <string>

#include "net/load/http_wire.h"

namespace weir::tests::sse_reader_test {

using weir::load::sse_reader;

TEST_CASE("an event without an end is given up, and nothing of it is kept") {
  for (const std::string& piece :
       {std::string(64 * 1024, 'x'), "data: " + std::string(64 * 1024, 'x') + "\n"}) {
    sse_reader reader;
    std::size_t sent = 0;
    while (!reader.too_long() && sent < (std::size_t{64} << 20)) {
      reader.feed(piece);
      CHECK_FALSE(reader.next().has_value());
      sent += piece.size();
    }
    CHECK(reader.too_long());
    CHECK(sent <= sse_reader::longest_event + (std::size_t{1} << 20));
    reader.feed("data: a\n\n");
    CHECK_FALSE(reader.next().has_value());
  }
}

TEST_CASE("an event of the longest size is read") {
  sse_reader reader;
  const std::string text(sse_reader::longest_event - 1024, 'x');
  reader.feed("data: " + text + "\n\n");
  const auto event = reader.next();
  REQUIRE(event.has_value());
  CHECK(*event == text);
  CHECK_FALSE(reader.too_long());
}

}  // namespace weir::tests::sse_reader_test
