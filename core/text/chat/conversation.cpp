#include "core/text/chat/conversation.h"

namespace weir::core {
namespace {

namespace json = boost::json;

// The recursion is as deep as the JSON is nested, which the parser of the request has limited.
std::uint64_t text_bytes(const json::value& v) {
  std::uint64_t sum = 8;
  if (const auto* s = v.if_string()) return s->size();
  if (const auto* list = v.if_array())
    for (const json::value& item : *list) sum += text_bytes(item);
  if (const auto* o = v.if_object())
    for (const auto& [key, member] : *o) sum += key.size() + text_bytes(member);
  return sum;
}

}  // namespace

std::uint64_t text_bytes(const conversation& c) {
  std::uint64_t sum = text_bytes(c.tools) + text_bytes(c.documents);
  for (const json::value& m : c.messages) sum += text_bytes(m);
  for (const auto& [key, member] : c.variables) sum += key.size() + text_bytes(member);
  return sum;
}

}  // namespace weir::core
