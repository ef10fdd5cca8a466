// followed_grammar.h — what the fuzz targets of grammars do: compile, bind to single bytes, follow a text.
//
// What is refused has a message. A text that is alive can be completed, and its completion may end.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/grammar/compile.h"
#include "core/grammar/constraint.h"
#include "tests/support/byte_views.h"

namespace weir::test {

inline void follow_grammar(std::string_view input, const char* syntax) {
  using namespace core::grammar;
  const auto cut = input.find("\n---\n");
  constraint_text text;
  text.what = constraint_text::kind::grammar;
  text.text = input.substr(0, cut);
  text.syntax = syntax;
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
  if (cut != input.npos) {
    for (const char c : input.substr(cut + 5, 100)) {
      const auto to = (*over)->step(at, static_cast<unsigned char>(c));
      if (to == constraint::failed) return;
      if (to == constraint::dead) break;
      at = to;
    }
  }
  if (at <= constraint::failed) return;
  const auto rest = (*over)->completion(at, 1'000);
  if (!rest) return;
  const auto end = (*over)->step(at, *rest);
  if (end != constraint::failed && (end == constraint::dead || !(*over)->may_end(end))) __builtin_trap();
}

}  // namespace weir::test
