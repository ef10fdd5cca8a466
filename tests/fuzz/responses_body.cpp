// Any bytes as the body of /v1/responses, or as a message of its WebSocket mode: a request with a
// conversation, or an error, never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "net/protocol/responses.h"

namespace {

using namespace weir::net;

void take(std::string_view text, bool of_socket) {
  auto parsed = responses::parse(text, SIZE_MAX, false, of_socket);
  if (!parsed) {
    if (parsed.error().message.empty()) std::abort();
    return;
  }
  const boost::json::object message{{"type", "message"}, {"role", "user"}, {"content", "hi"}};
  const boost::json::value found(message);
  const auto find = [&](std::string_view id) { return id.size() % 2 == 0 ? &found : nullptr; };
  const auto made = responses::converse(*parsed, {}, find);
  if (!made && made.error().message.empty()) std::abort();
  const auto& said = std::get<weir::core::conversation>(parsed->request.input).messages;
  if (made && said.empty() && parsed->generate) std::abort();
  responses::name_items(parsed->items, "tag");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  take(text, false);
  take(text, true);
  return 0;
}
