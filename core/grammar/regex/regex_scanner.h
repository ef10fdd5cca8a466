// regex_scanner.h — the characters, classes and quantifiers of a regular expression, one after the other.
//
// Thread safety: none; one expression each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/grammar/regex/regex.h"

namespace weir::core::grammar {

// Thrown inside of parse_regex() alone.
struct regex_refusal {
  regex_error what;
};

class regex_scanner {
 public:
  explicit regex_scanner(std::string_view text) : text_(text) {}

  bool more() const { return at_ < text_.size(); }
  bool done() const { return !more(); }
  char peek() const { return more() ? text_[at_] : '\0'; }
  std::size_t offset() const { return at_; }
  std::string_view text() const { return text_; }
  bool take(char c);
  bool take(std::string_view what);

  [[noreturn]] void refuse(std::string what) const { refuse_at(at_, std::move(what)); }
  [[noreturn]] void refuse_at(std::size_t offset, std::string what) const;

  struct count {
    std::uint32_t min = 0, max = 0;
  };
  bool at_quantifier() const;
  std::optional<count> quantifier();  // with the sign of a lazy one; nullopt: there is none here

  // From '[' to behind ']'.
  code_points character_class(bool ignore_case);
  // A literal character or an escape that means one character of a set.
  code_points character(bool ignore_case);
  // Behind "(?<", to behind '>'.
  void group_name();
  // The letters of "(?i-s:"; stops before ':' or ')'.
  void flags_of_group(bool& ignore_case, bool& dot_all);

 private:
  char32_t raw_character();  // one UTF-8 character of the expression
  code_points escape(bool in_class, std::optional<char32_t>& single);  // behind the backslash
  code_points named_property(bool negated);                            // behind \p or \P
  char32_t hex(std::size_t digits);
  char32_t unicode_escape();  // behind \u; may be a surrogate
  std::optional<std::uint32_t> number();
  std::optional<count> braces() const;  // {m}, {m,}, {m,n} here; does not move

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace weir::core::grammar
