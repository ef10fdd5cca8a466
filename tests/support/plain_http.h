// plain_http.h — requests of HTTP/1.0, whose answers have no chunks, so that each byte behind the header is
// the body's: for streams that are cut at any byte.
#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "tests/support/raw_client.h"

namespace weir::tests {

// `more`: further lines of the header, each with its end.
inline std::string plain_request(std::string_view method, std::string_view target, std::string_view more = {},
                                 std::string_view body = {}) {
  return fmt::format(
      "{} {} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}"
      "\r\n{}",
      method, target, body.size(), more, body);
}

// The body of the answer, which has to be 200; at most `most` bytes of it.
inline std::string plain_body(unsigned short port, const std::string& request,
                              std::size_t most = std::string::npos) {
  raw_client c(port);
  c.send(request);
  const auto& heard = c.read_until("\r\n\r\n");
  INFO(heard);
  REQUIRE(heard.find(" 200 ") != heard.npos);
  const auto begin = heard.find("\r\n\r\n") + 4;
  while (heard.size() - begin < most && c.read_more()) {
  }
  return heard.substr(begin, most);
}

}  // namespace weir::tests
