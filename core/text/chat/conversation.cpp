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

// nullopt: the content is not a list of text parts.
std::optional<json::string> joined(const json::value& content) {
  const auto* parts = content.if_array();
  if (!parts) return std::nullopt;
  json::string text;
  for (const json::value& part : *parts) {
    const auto* o = part.if_object();
    const auto* piece = o ? o->if_contains("text") : nullptr;
    if (!piece || !piece->is_string()) return std::nullopt;
    text += piece->get_string();
  }
  return text;
}

}  // namespace

std::uint64_t text_bytes(const conversation& c) {
  std::uint64_t sum = text_bytes(c.tools) + text_bytes(c.documents);
  for (const json::value& m : c.messages) sum += text_bytes(m);
  for (const auto& [key, member] : c.variables) sum += key.size() + text_bytes(member);
  return sum;
}

std::optional<conversation> with_joined_parts(const conversation& c) {
  std::optional<conversation> out;
  for (std::size_t i = 0; i < c.messages.size(); ++i) {
    const auto* m = c.messages[i].if_object();
    const auto* content = m ? m->if_contains("content") : nullptr;
    auto text = content ? joined(*content) : std::nullopt;
    if (!text) continue;
    if (!out) out = c;
    out->messages[i].get_object()["content"] = std::move(*text);
  }
  return out;
}

}  // namespace weir::core
