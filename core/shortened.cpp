#include "core/shortened.h"

#include <fmt/format.h>
#include <utf8proc.h>

namespace weir::core {
namespace {

bool may_stand_in_a_line(utf8proc_int32_t character) {
  switch (utf8proc_category(character)) {
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

std::string shortened(std::string_view utf8) {
  if (utf8.size() <= longest_shown) return std::string(utf8);
  constexpr std::string_view rest = "…";
  std::size_t end = longest_shown - rest.size();
  // Moves back to the start of the character that is cut.
  while (end > 0 && (static_cast<unsigned char>(utf8[end]) & 0xc0) == 0x80) --end;
  return std::string(utf8.substr(0, end)).append(rest);
}

std::string one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    utf8proc_int32_t character = -1;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    const auto taken = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &character);
    const std::size_t length = taken > 0 ? static_cast<std::size_t>(taken) : 1;
    if (taken > 0 && may_stand_in_a_line(character)) {
      out += text.substr(0, length);
    } else if (text.front() == '\n') {
      out += "\\n";
    } else if (taken <= 0 || character < 0x80) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else {
      out += fmt::format("\\u{{{:x}}}", character);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace weir::core
