// grammar_scanner.h — the characters of a grammar's source, one after the other, for the readers of GBNF and
// Lark.
//
// Errors: throws grammar_refusal with the offset. Offsets are bytes of the source.
//
// Thread safety: none; one source each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/grammar/notation/draft.h"
#include "core/grammar/regex/code_points.h"

namespace weir::core::grammar {

class grammar_scanner {
 public:
  static constexpr std::size_t most_bytes = 256 * 1024;

  // Refuses a source of more than `most_bytes`.
  explicit grammar_scanner(std::string_view source);

  bool more() const { return at_ < text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  std::size_t offset() const { return at_; }
  void move_to(std::size_t offset) { at_ = offset; }
  std::string_view source() const { return text_; }
  std::string_view from(std::size_t offset) const { return text_.substr(offset, at_ - offset); }
  bool looks_at(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
  bool take(char c);
  bool take(std::string_view what);
  // The characters up to the first for which `while_true` is false.
  template <class Test>
  std::string_view take_while(Test while_true) {
    const auto first = at_;
    while (more() && while_true(text_[at_])) ++at_;
    return from(first);
  }

  template <class... A>
  [[noreturn]] void refuse(fmt::format_string<A...> format, A&&... args) const {
    refuse_at(at_, format, std::forward<A>(args)...);
  }
  template <class... A>
  [[noreturn]] static void refuse_at(std::size_t offset, fmt::format_string<A...> format, A&&... args) {
    throw grammar_refusal{offset, fmt::format(format, std::forward<A>(args)...)};
  }

  char32_t raw_character();              // one of UTF-8
  char32_t escape();                     // behind the backslash
  std::optional<std::uint32_t> count();  // a number in decimal digits, below `unbounded`

  // Reads {m}, {m,} or {m,n}, with blanks anywhere, from behind the '{' to behind the '}'.
  struct counts {
    std::uint32_t min = 0, max = 0;
  };
  counts counts_in_braces();

 private:
  char32_t hex(std::size_t digits);

  std::string_view text_;
  std::size_t at_ = 0;
};

// TERMINALS of Lark are written in capitals, perhaps behind underscores.
bool is_terminal_name(std::string_view name);
bool is_name_letter(char c);  // letters and _
bool is_decimal(char c);
bool is_line_end(char c);

}  // namespace weir::core::grammar
