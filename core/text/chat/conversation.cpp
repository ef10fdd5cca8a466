#include "core/text/chat/conversation.h"

namespace weir::core {
namespace {

namespace json = boost::json;

// The recursion is as deep as the JSON is nested, which the parser of the request has limited.
constexpr std::uint64_t block = 32;  // about what an allocation takes beside what it is for

std::uint64_t held_bytes(const json::value& v);

std::uint64_t held_bytes(const json::array& list) {
  std::uint64_t sum = list.empty() ? 0 : block;
  for (const json::value& item : list) sum += sizeof item + held_bytes(item);
  return sum;
}

std::uint64_t held_bytes(const json::object& o) {
  std::uint64_t sum = o.empty() ? 0 : block;
  for (const auto& member : o)
    sum += sizeof member + block + member.key().size() + held_bytes(member.value());
  return sum;
}

std::uint64_t held_bytes(const json::value& v) {
  constexpr std::size_t inside = 14;  // characters that a json::string has in itself
  if (const auto* s = v.if_string()) return s->size() <= inside ? 0 : block + s->size();
  if (const auto* list = v.if_array()) return held_bytes(*list);
  const auto* o = v.if_object();
  return o ? held_bytes(*o) : 0;
}

}  // namespace

std::uint64_t held_bytes(const conversation& c) {
  return held_bytes(c.messages) + held_bytes(c.tools) + held_bytes(c.documents) + held_bytes(c.variables);
}

}  // namespace weir::core
