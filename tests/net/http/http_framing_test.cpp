#include "net/http/http_framing.h"

#include <catch2/catch.hpp>

namespace weir::tests::http_framing_test {

TEST_CASE("http framing: only chunked, alone and in HTTP/1.1, is a transfer coding that is served") {
  const struct {
    unsigned version;
    const char* coding;  // null: no such line
    bool content_length;
    unsigned status;  // 0: fine
  } rows[] = {
      {11, nullptr, false, 0},
      {11, nullptr, true, 0},
      {10, nullptr, true, 0},
      {11, "chunked", false, 0},
      {11, "Chunked", false, 0},
      {11, " chunked\t", false, 0},
      {11, "chunked", true, 400},
      {10, "chunked", false, 400},
      {10, "identity", true, 400},
      {11, "", false, 400},
      {11, "identity", false, 400},
      {11, "identity", true, 400},
      {11, "xchunked", false, 400},
      {11, "chunkedx", false, 400},
      {11, "chunked, identity", false, 400},
      {11, "chunked,chunked", false, 400},
      {11, "chunked, gzip", false, 400},
      {11, "gzip", false, 400},
      {11, "gzip, chunked", false, 501},
      {11, "deflate,GZIP , chunked", false, 501},
      {11, "gzip, xchunked", false, 400},
  };
  for (const auto& row : rows) {
    CAPTURE(row.version, row.coding ? row.coding : "none", row.content_length);
    net::framing f{row.version, std::nullopt, row.content_length};
    if (row.coding) f.transfer_encoding = row.coding;
    const auto no = net::judge_framing(f);
    CHECK((no ? no->status : 0) == row.status);
    if (no) CHECK(no->close);
  }
}

}  // namespace weir::tests::http_framing_test
