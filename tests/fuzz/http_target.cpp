// Any bytes as a request target, id of an answer or of an event, Host, Origin, subprotocol list,
// Authorization or Sec-WebSocket-Key header.
#include <cstddef>
#include <cstdint>

#include "net/access/handshake.h"
#include "net/http/event_cursor.h"
#include "net/http/router.h"
#include "net/protocol/answer_id.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::net;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> allowed{"https://app.example"};
  (void)find_route("GET", text);
  (void)parse_event_id(query_parameter(text, "after"));
  (void)parse_event_id(text);
  (void)host_allowed(text, "127.0.0.1", allowed);
  (void)origin_allowed(text, "127.0.0.1:8080", allowed);
  (void)parse_protocols(text);
  (void)job_named(text);
  (void)is_websocket_key(text);
  (void)bearer_of(text);
  return 0;
}
