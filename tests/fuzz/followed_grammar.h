// followed_grammar.h — what the fuzz targets of grammars and schemas do: compile, bind to single bytes,
// follow a text.
//
// What is refused has a message. A text that is alive can be completed, and its completion may end. A text
// that fits a schema is JSON.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/grammar/compile.h"
#include "core/grammar/constraint.h"
#include "tests/support/byte_views.h"

namespace weir::tests {

inline bool is_json(std::string_view text) {
  boost::json::error_code ec;
  boost::json::parse(text, ec, {}, {.max_depth = 1'000});
  return !ec;
}

// `input`: the source of a constraint, then perhaps "\n---\n" and a text. `syntax`: "gbnf", "lark" or
// "schema".
inline void follow_grammar(std::string_view input, const std::string& syntax) {
  using namespace core::grammar;
  const auto cut = input.find("\n---\n");
  const auto following = cut == input.npos ? std::string_view() : input.substr(cut + 5, 100);
  constraint_text text;
  text.what = syntax == "schema" ? constraint_text::kind::json_schema : constraint_text::kind::grammar;
  text.text = input.substr(0, cut);
  if (text.what == constraint_text::kind::grammar) text.syntax = syntax;
  fuel budget({.units = 200'000});
  auto made = compile(text, budget);
  if (!made) {
    if (made.error().message.empty()) __builtin_trap();
    return;
  }
  auto over = constraint::make(std::move(*made), byte_views(), {}, &budget);
  if (!over) {
    if (over.error().message.empty()) __builtin_trap();
    return;
  }
  auto at = (*over)->start();
  std::string so_far;
  for (const char c : following) {
    const auto to = (*over)->step(at, static_cast<unsigned char>(c));
    if (to == constraint::failed) return;
    if (to == constraint::dead) break;
    at = to;
    so_far += c;
  }
  if (at <= constraint::failed) return;
  const auto rest = (*over)->completion(at, 100);
  if (!rest) return;
  const auto end = (*over)->step(at, *rest);
  if (end == constraint::failed) return;
  if (end == constraint::dead || !(*over)->may_end(end)) __builtin_trap();
  if (syntax == "schema" && !is_json(so_far + *rest)) __builtin_trap();
}

}  // namespace weir::tests
