// Any bytes as the body of /v1/responses: a request with a conversation, or an error, never a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "net/protocol/responses.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::net;
  auto parsed = responses::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) {
    if (parsed.error().message.empty()) std::abort();
    return 0;
  }
  const boost::json::object message{{"type", "message"}, {"role", "user"}, {"content", "hi"}};
  const boost::json::value found(message);
  const auto find = [&](std::string_view id) { return id.size() % 2 == 0 ? &found : nullptr; };
  const auto made = responses::converse(*parsed, {}, find);
  if (!made && made.error().message.empty()) std::abort();
  if (made && std::get<weir::core::conversation>(parsed->request.input).messages.empty()) std::abort();
  responses::name_items(parsed->items, "tag");
  return 0;
}
