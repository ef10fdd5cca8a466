// ws_table.h — rows of frames as bytes, and the words that a server answers (ws_frames.h). One more ping
// follows the bytes: if the connection goes on, its pong is the last word; after a close nothing is answered.
#pragma once

#include <algorithm>

#include "tests/support/raw_client.h"
#include "tests/support/ws_frames.h"

namespace weir::tests {

inline constexpr std::string_view upgrade_request =
    "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Protocol: weir.v1\r\n\r\n";

// A connection whose upgrade was answered and whose first frame was read: only frames follow.
class raw_socket {
 public:
  explicit raw_socket(unsigned short port) : c_(port) {
    c_.send(upgrade_request);
    const auto& heard = c_.read_until("\r\n\r\n");
    REQUIRE(heard.starts_with("HTTP/1.1 101"));
    begin_ = heard.find("\r\n\r\n") + 4;
    while (words() != std::vector<std::string>{"session.created"}) REQUIRE(read_more());
    begin_ = c_.heard().size();
  }

  raw_client& wire() { return c_; }
  bool read_more() { return c_.read_more(); }
  std::string_view frames() const { return std::string_view(c_.heard()).substr(begin_); }
  std::vector<std::string> words() const { return ws_bytes::words_of(frames()); }

 private:
  raw_client c_;
  std::size_t begin_ = 0;
};

struct ws_row {
  std::string name, bytes;
  std::vector<std::string> answers;       // words; where the last is no close, the connection goes on
  std::vector<std::string> or_else = {};  // answers that the RFC allows as well
};

inline const std::string goes_on = "pong 777";

// The words that the server answers to the row's bytes, sent in pieces of `piece` bytes, and to the ping. FIN
// follows the ping: a server that waits for more bytes then ends the connection, too.
inline std::vector<std::string> answers_to(const ws_row& row, unsigned short port, std::size_t piece) {
  raw_socket s(port);
  s.wire().send_in_pieces(row.bytes, piece);
  s.wire().send(ws_bytes::whole(ws_bytes::text, ws_bytes::ask("777")));
  s.wire().finish();
  s.wire().read_to_end();
  return s.words();
}

inline std::vector<std::string> expected_of(std::vector<std::string> answers) {
  if (answers.empty() || !answers.back().starts_with("close")) answers.push_back(goes_on);
  return answers;
}

// Sends the row whole, then byte by byte if it is short, else in pieces at whose ends no frame ends.
inline void check_row(const ws_row& row, unsigned short port) {
  constexpr std::size_t is_short = 512, odd = 1021;
  for (const std::size_t piece :
       {std::max<std::size_t>(row.bytes.size(), 1), row.bytes.size() < is_short ? 1 : odd}) {
    const auto answers = answers_to(row, port, piece);
    INFO("row: " << row.name << ", in pieces of " << piece);
    if (!row.or_else.empty() && answers == expected_of(row.or_else)) continue;
    CHECK(answers == expected_of(row.answers));
  }
}

}  // namespace weir::tests
