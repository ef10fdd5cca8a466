// Any bytes as a text frame: an answer, never a crash; and what is refused says why with one of the wire's
// codes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "net/protocol/ws_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::net;
  static const std::set<std::string_view> codes{"bad_json", "bad_message", "unknown_type", "invalid_param"};
  auto message = ws::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (auto* e = std::get_if<ws::protocol_error>(&message)) {
    if (!codes.contains(e->code) || e->message.empty() || e->fatal) std::abort();
  }
  return 0;
}
