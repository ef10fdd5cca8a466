// Whatever a server sends, in pieces: the client's halves of WebSocket, HTTP and server-sent events come to
// an end of each piece, and an answer ends at most once.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "net/load/talk.h"

namespace {

void listen(weir::load::talk& t, std::string_view bytes) {
  weir::load::happening h;
  int ends = 0;
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, 1 + static_cast<unsigned char>(bytes[0]) % 50);
    bytes.remove_prefix(piece.size());
    t.feed(piece);
    while (t.next(h)) {
      using kind = weir::load::happening::kind;
      if (h.is == kind::done || h.is == kind::refused) ++ends;
    }
  }
  if (ends > 1) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace load = weir::load;
  std::string text(reinterpret_cast<const char*>(data), size);
  load::manner ws, http;
  ws.to.speaks = load::protocol::weir;
  load::talk a(ws, 1), b(http, 1);
  const auto hello = a.hello();
  std::string upgraded = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: ";
  upgraded += load::ws_accept(load::http_header(hello, "sec-websocket-key")) + "\r\n\r\n";
  load::question q;
  q.id = "r";
  a.ask(q);
  b.ask(q);
  a.feed(upgraded);
  listen(a, text);
  listen(b, text);
  return 0;
}
