#include "core/text/tokenizer/unicode.h"

#include <utf8proc.h>

#include <bit>

namespace weir::core {
namespace {

using kind = utf8_step::kind;

constexpr bool is_continuation(unsigned char b) noexcept { return (b & 0xC0) == 0x80; }

// The range of the second byte excludes overlong forms, surrogates and code points above U+10FFFF.
constexpr bool fits_second(unsigned char lead, unsigned char b) noexcept {
  switch (lead) {
    case 0xE0:
      return b >= 0xA0 && b <= 0xBF;
    case 0xED:
      return b >= 0x80 && b <= 0x9F;
    case 0xF0:
      return b >= 0x90 && b <= 0xBF;
    case 0xF4:
      return b >= 0x80 && b <= 0x8F;
    default:
      return is_continuation(b);
  }
}

bool has_category(char32_t c, std::uint32_t categories) noexcept {
  return (categories >> utf8proc_category(static_cast<utf8proc_int32_t>(c))) & 1;
}

constexpr std::uint32_t numbers =
    1u << UTF8PROC_CATEGORY_ND | 1u << UTF8PROC_CATEGORY_NL | 1u << UTF8PROC_CATEGORY_NO;
constexpr std::uint32_t punctuation = 1u << UTF8PROC_CATEGORY_PC | 1u << UTF8PROC_CATEGORY_PD |
                                      1u << UTF8PROC_CATEGORY_PS | 1u << UTF8PROC_CATEGORY_PE |
                                      1u << UTF8PROC_CATEGORY_PI | 1u << UTF8PROC_CATEGORY_PF |
                                      1u << UTF8PROC_CATEGORY_PO;
constexpr std::uint32_t marks =
    1u << UTF8PROC_CATEGORY_MN | 1u << UTF8PROC_CATEGORY_MC | 1u << UTF8PROC_CATEGORY_ME;
constexpr std::uint32_t letters = 1u << UTF8PROC_CATEGORY_LU | 1u << UTF8PROC_CATEGORY_LL |
                                  1u << UTF8PROC_CATEGORY_LT | 1u << UTF8PROC_CATEGORY_LM |
                                  1u << UTF8PROC_CATEGORY_LO;
constexpr std::uint32_t words =
    letters | marks | 1u << UTF8PROC_CATEGORY_ND | 1u << UTF8PROC_CATEGORY_NL | 1u << UTF8PROC_CATEGORY_PC;

}  // namespace

utf8_step next_utf8(std::string_view bytes) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {kind::whole, 1};
  if (lead < 0xC2 || lead > 0xF4) return {kind::broken, 1};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {kind::cut, i};
    if (i == 1 ? !fits_second(lead, byte(1)) : !is_continuation(byte(i))) return {kind::broken, i};
  }
  return {kind::whole, size};
}

bool is_valid_utf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const utf8_step step = next_utf8(bytes);
    if (step.what != kind::whole) return false;
    bytes.remove_prefix(step.size);
  }
  return true;
}

void append_valid_utf8(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const utf8_step step = next_utf8(bytes);
    out.append(step.what == kind::whole ? bytes.substr(0, step.size) : replacement_character);
    bytes.remove_prefix(step.size);
  }
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  append_valid_utf8(out, bytes);
  return out;
}

std::size_t character_size(char lead) noexcept {
  const auto ones = std::countl_one(static_cast<unsigned char>(lead));
  return ones == 0 ? 1 : static_cast<std::size_t>(ones);
}

char32_t take_character(std::string_view& text) noexcept {
  const std::size_t size = character_size(text[0]);
  auto c = static_cast<char32_t>(static_cast<unsigned char>(text[0]));
  if (size > 1) c &= 0x7Fu >> size;
  for (std::size_t i = 1; i < size; ++i) c = c << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  text.remove_prefix(size);
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.append({static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))});
  } else if (c < 0x10000) {
    out.append({static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
                static_cast<char>(0x80 | (c & 0x3F))});
  } else {
    out.append({static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
                static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))});
  }
}

bool is_whitespace(char32_t c) noexcept {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_numeric(char32_t c) noexcept {
  if (c < 0x80) return c >= '0' && c <= '9';
  return has_category(c, numbers);
}

bool is_punctuation(char32_t c) noexcept {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  return has_category(c, punctuation);
}

bool is_mark(char32_t c) noexcept { return c >= 0x80 && has_category(c, marks); }

bool is_word(char32_t c) noexcept {
  const bool circled_letter = c >= 0x24B6 && c <= 0x24E9;  // alphabetic, although their category is symbol
  return has_category(c, words) || circled_letter || c == 0x200C || c == 0x200D;
}

}  // namespace weir::core
