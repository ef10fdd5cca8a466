// spoken.h — weir.v1 as bytes, for tests without a socket: what a server says to a client's side of the
// protocol, and what that side says.
#pragma once

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

#include "net/load/talk.h"
#include "tests/net/load/scripted_server.h"

namespace weir::tests {

inline load::manner speaking(std::string_view url) {
  load::manner m;
  m.to = load::parse_url("url", url).value();
  return m;
}

inline std::string upgrade_answer(const load::talk& t) {
  const std::string hello = t.hello();
  return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " +
         load::ws_accept(load::http_header(hello, "sec-websocket-key")) + "\r\n\r\n";
}

// The text of a client's first frame, which is removed from `bytes`.
inline std::string next_frame(std::string& bytes) {
  const auto b = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  REQUIRE(bytes.size() >= 6);
  REQUIRE((b(1) & 0x80) != 0);
  std::size_t length = b(1) & 0x7F, at = 2;
  if (length == 126) length = static_cast<std::size_t>(b(2) << 8 | b(3)), at = 4;
  REQUIRE(bytes.size() >= at + 4 + length);
  std::string out;
  for (std::size_t i = 0; i < length; ++i) out += static_cast<char>(b(at + 4 + i) ^ b(at + i % 4));
  bytes.erase(0, at + 4 + length);
  return out;
}

// The messages of a client's bytes.
inline std::vector<boost::json::object> messages_of(std::string bytes) {
  std::vector<boost::json::object> all;
  while (!bytes.empty()) all.push_back(boost::json::parse(next_frame(bytes)).as_object());
  return all;
}

}  // namespace weir::tests
