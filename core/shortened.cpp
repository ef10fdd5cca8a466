#include "core/shortened.h"

namespace weir::core {

std::string shortened(std::string_view utf8) {
  if (utf8.size() <= longest_shown) return std::string(utf8);
  constexpr std::string_view rest = "…";
  std::size_t end = longest_shown - rest.size();
  // Moves back to the start of the character that is cut.
  while (end > 0 && (static_cast<unsigned char>(utf8[end]) & 0xc0) == 0x80) --end;
  return std::string(utf8.substr(0, end)).append(rest);
}

}  // namespace weir::core
