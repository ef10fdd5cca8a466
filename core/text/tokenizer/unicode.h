// unicode.h — reads UTF-8 character by character; the character classes by which tokenizers cut text.
//
// "Valid" text means valid UTF-8 in this file.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::core {

// The first character of a text.
struct utf8_step {
  // whole: a character. broken: an invalid sequence, which one U+FFFD replaces: one byte, or the longest
  // sequence that could have begun a character. cut: the beginning of a character at the end of the text.
  enum class kind { whole, broken, cut };
  kind what = kind::broken;
  std::size_t size = 1;  // bytes
};
// REQUIRES: `bytes` is not empty.
utf8_step next_utf8(std::string_view bytes) noexcept;

bool is_valid_utf8(std::string_view bytes) noexcept;
// Appends `bytes` with each invalid sequence replaced by U+FFFD.
void append_valid_utf8(std::string& out, std::string_view bytes);
std::string to_valid_utf8(std::string_view bytes);

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

// Removes the first character from `text` and returns it. REQUIRES: `text` is valid and not empty.
char32_t take_character(std::string_view& text) noexcept;
void append_utf8(std::string& out, char32_t c);
// Length in bytes of a character in valid text; `lead`: its first byte.
std::size_t character_size(char lead) noexcept;

bool is_whitespace(char32_t c) noexcept;   // the White_Space property
bool is_numeric(char32_t c) noexcept;      // categories Nd, Nl, No
bool is_punctuation(char32_t c) noexcept;  // categories P*, and in ASCII also symbols such as '+'
bool is_mark(char32_t c) noexcept;         // categories M*
bool is_word(char32_t c) noexcept;         // \w: letters, marks, Nd, Nl, Pc, circled letters, U+200C, U+200D

}  // namespace weir::core
