#include "core/visible.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <iterator>

#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

// Calls write(out, bytes, character) for each character. Bytes that are none become escapes.
template <class Write>
std::string with_characters(std::string_view text, Write write) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto step = next_utf8(text);
    const std::string_view one = text.substr(0, step.size);
    if (step.what == utf8_step::kind::whole) {
      std::string_view rest = one;
      write(out, one, static_cast<std::uint32_t>(take_character(rest)));
    } else {
      for (const char byte : one)
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
    }
    text.remove_prefix(step.size);
  }
  return out;
}

bool may_stand_in_a_line(std::uint32_t character) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(character))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string visible(std::string_view text) {
  return with_characters(text, [](std::string& out, std::string_view bytes, std::uint32_t c) {
    const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);  // C0, DEL, and C1
    if (control && c != '\n' && c != '\t')
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    else
      out += bytes;
  });
}

std::string one_line(std::string_view text) {
  return with_characters(text, [](std::string& out, std::string_view bytes, std::uint32_t c) {
    if (may_stand_in_a_line(c))
      out += bytes;
    else if (c == '\n')
      out += "\\n";
    else if (c < 0x80)
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", c);
    else
      fmt::format_to(std::back_inserter(out), "\\u{{{:x}}}", c);
  });
}

}  // namespace weir::core
