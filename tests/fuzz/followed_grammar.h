// followed_grammar.h — what the fuzz targets of grammars do: compile, bind to single bytes, follow a text.
//
// What is refused has a message. A text that is alive can be completed, and its completion may end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/compile.h"
#include "core/grammar/constraint.h"
#include "tests/support/toy_tokenizer.h"

namespace weir::test {

inline std::shared_ptr<core::grammar::terminal_views> views_of_bytes() {
  static const auto views = [] {
    std::vector<std::string> bytes;
    for (int b = 0; b < 256; ++b) bytes.emplace_back(1, static_cast<char>(b));
    return std::make_shared<core::grammar::terminal_views>(
        std::make_shared<const core::grammar::token_trie>(std::make_shared<toy_tokenizer>(std::move(bytes))));
  }();
  return views;
}

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
  auto over = constraint::make(std::move(*made), views_of_bytes(), {}, &budget);
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
