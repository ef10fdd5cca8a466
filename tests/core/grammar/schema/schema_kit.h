// schema_kit.h — walks texts through a schema, byte by byte, over a vocabulary of single bytes.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/constraint.h"
#include "core/grammar/schema.h"
#include "core/grammar/schema/json_tree.h"
#include "tests/support/toy_tokenizer.h"

namespace weir::test {

inline std::shared_ptr<core::grammar::terminal_views> byte_views() {
  static const auto views = [] {
    std::vector<std::string> bytes;
    for (int b = 0; b < 256; ++b) bytes.emplace_back(1, static_cast<char>(b));
    return std::make_shared<core::grammar::terminal_views>(
        std::make_shared<const core::grammar::token_trie>(std::make_shared<toy_tokenizer>(std::move(bytes))));
  }();
  return views;
}

// A value as compact JSON, its numbers as they were written.
inline std::string compact(const core::grammar::json_tree& tree, core::grammar::json_node_id id) {
  using core::grammar::json_kind;
  const auto& n = tree[id];
  const auto quoted = [](const std::string& text) {
    return "\"" + core::grammar::spelled(text, core::grammar::spelling::json_string) + "\"";
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

// A schema that was compiled, or why it was not.
struct schema_under_test {
  std::shared_ptr<core::grammar::constraint> constraint;
  std::optional<core::error> refusal;
  std::vector<core::grammar::warning> warnings;

  explicit schema_under_test(std::string_view schema, bool strict = false) {
    auto rules = core::grammar::compile_schema(schema, {.strict = strict});
    if (!rules) {
      refusal = rules.error();
      return;
    }
    warnings = rules->warnings;
    auto made = core::grammar::constraint::make(std::move(*rules), byte_views());
    if (made) {
      constraint = *made;
    } else {
      refusal = made.error();
    }
  }

  // The first byte that may not stand where it stands; the text's length where it may not end there; nullopt:
  // the text is accepted.
  std::optional<std::size_t> refused_at(std::string_view text) const {
    REQUIRE(constraint);
    auto at = constraint->start();
    for (std::size_t i = 0; i < text.size(); ++i) {
      at = constraint->step(at, static_cast<unsigned char>(text[i]));
      REQUIRE(at != core::grammar::constraint::failed);
      if (at == core::grammar::constraint::dead) return i;
    }
    if (constraint->may_end(at)) return std::nullopt;
    return text.size();
  }
  bool accepts(std::string_view text) const { return !refused_at(text); }
};

}  // namespace weir::test
