// Any bytes that a server sends, in pieces. The client's halves of WebSocket, HTTP and server-sent events
// finish each piece. An answer ends at most once, also after a resume. A delta that is read without a JSON
// parser has the fields that the parser reads.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "net/load/plain_delta.h"
#include "net/load/talk.h"
#include "net/load/talk_fields.h"

namespace {

namespace load = weir::load;

void listen(load::talk& t, std::string_view bytes) {
  load::happening h;
  int ends = 0;
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, 1 + static_cast<unsigned char>(bytes[0]) % 50);
    bytes.remove_prefix(piece.size());
    t.feed(piece);
    while (t.next(h)) {
      using kind = load::happening::kind;
      if (h.is == kind::done || h.is == kind::refused) ++ends;
    }
  }
  if (ends > 1) std::abort();
}

std::string upgrade_answer(const load::talk& t) {
  const auto hello = t.hello();
  return "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: " +
         load::ws_accept(load::http_header(hello, "sec-websocket-key")) + "\r\n\r\n";
}

void agree(std::string_view text) {
  const auto plain = load::read_plain(text);
  if (!plain) return;
  const bool parsed = load::fields::with_object(text, [&](const auto& o) {
    using namespace load::fields;
    if (string_of(o, "id") != plain->id || string_of(o, "delta") != plain->text) std::abort();
    if (number_of(o, "seq") != plain->seq || number_of(o, "n") != plain->n) std::abort();
    if (number_of(o, "t") != plain->sampled) std::abort();
  });
  if (!parsed) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  agree(text);
  load::manner ws, http;
  ws.to.speaks = load::protocol::weir;
  ws.window = 3;
  load::talk a(ws, 1), b(http, 1), c(ws, 2);
  load::question q;
  q.id = "r";
  a.ask(q);
  b.ask(q);
  c.resume("r", "abc", 2);
  a.feed(upgrade_answer(a));
  c.feed(upgrade_answer(c));
  listen(a, text);
  listen(b, text);
  listen(c, text);
  return 0;
}
