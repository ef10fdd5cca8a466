#include "core/visible.h"

#include <fmt/format.h>

#include <iterator>

#include "core/text/tokenizer/unicode.h"

namespace weir::core {

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto step = next_utf8(text);
    const std::string_view one = text.substr(0, step.size);
    if (step.what == utf8_step::kind::whole) {
      std::string_view rest = one;
      const auto c = static_cast<unsigned>(take_character(rest));
      const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);  // C0, DEL, and C1
      if (control && c != '\n' && c != '\t')
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
      else
        out += one;
    } else {
      for (const char byte : one)
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
    }
    text.remove_prefix(step.size);
  }
  return out;
}

}  // namespace weir::core
