// compact_json.h — writes a value of a JSON tree as compact JSON, its numbers as they were written.
//
// Thread safety: pure function; any thread. It calls itself as deep as the tree is.
#pragma once

#include <string>

#include "core/grammar/regex/code_points.h"
#include "core/grammar/schema/json_tree.h"

namespace weir::tests {

inline std::string compact(const core::grammar::json_tree& tree, core::grammar::json_node_id id) {
  using core::grammar::json_kind;
  const auto& n = tree[id];
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    return out.append(core::grammar::spelled(text, core::grammar::spelling::json_string)).append("\"");
  };
  switch (n.kind) {
    case json_kind::null:
      return "null";
    case json_kind::boolean:
      return n.truth ? "true" : "false";
    case json_kind::number:
      return n.text;
    case json_kind::string:
      return quoted(n.text);
    default:
      break;
  }
  const bool object = n.kind == json_kind::object;
  std::string out(1, object ? '{' : '[');
  for (std::size_t i = 0; i < n.items.size(); ++i) {
    if (i > 0) out += ',';
    if (object) out += quoted(n.names[i]) + ":";
    out += compact(tree, n.items[i]);
  }
  return out + (object ? '}' : ']');
}

}  // namespace weir::tests
