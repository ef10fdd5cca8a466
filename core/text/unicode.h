// unicode.h — UTF-8 one step at a time, and the character classes that tokenizers cut by.
//
// Pure functions of their arguments: any thread. "Valid" text below means valid UTF-8; to_valid_utf8 makes it
// so.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::core {

// What `bytes` (not empty) starts with: a whole character, a broken sequence that U+FFFD stands for (the
// longest prefix that could have begun a character), or a beginning that the end of the text cut off.
struct utf8_step {
  enum class kind { whole, broken, cut };
  kind what = kind::broken;
  std::size_t size = 1;
};
utf8_step next_utf8(std::string_view bytes) noexcept;

bool is_valid_utf8(std::string_view bytes) noexcept;
// Broken sequences become U+FFFD, one for each.
void append_valid_utf8(std::string& out, std::string_view bytes);
std::string to_valid_utf8(std::string_view bytes);

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

// REQUIRES valid text, not empty. Takes the first character off `text`.
char32_t take_character(std::string_view& text) noexcept;
void append_utf8(std::string& out, char32_t c);
// Length in bytes of the character that starts with `lead`, in valid text.
std::size_t character_size(char lead) noexcept;

bool is_whitespace(char32_t c) noexcept;   // the White_Space property
bool is_numeric(char32_t c) noexcept;      // categories Nd, Nl, No
bool is_punctuation(char32_t c) noexcept;  // categories P*, and all of ASCII's
bool is_mark(char32_t c) noexcept;         // categories M*
bool is_word(char32_t c) noexcept;         // \w: alphabetic, marks, Nd, Pc and joiners

}  // namespace weir::core
