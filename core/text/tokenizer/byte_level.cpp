#include "core/text/tokenizer/byte_level.h"

#include <array>

#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

// Bytes that are printable in Latin-1 are spelled as that character. The other bytes are spelled, in order,
// as the characters from U+0100 on.
constexpr bool is_printable(unsigned b) noexcept {
  return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
}

constexpr std::array<char32_t, 256> make_alphabet() noexcept {
  std::array<char32_t, 256> table{};
  char32_t next = 0x100;
  for (unsigned b = 0; b < 256; ++b) table[b] = is_printable(b) ? b : next++;
  return table;
}
constexpr auto alphabet = make_alphabet();

constexpr std::array<short, 0x144> make_inverse() noexcept {
  std::array<short, 0x144> table{};
  for (short& b : table) b = -1;
  for (unsigned b = 0; b < 256; ++b) table[alphabet[b]] = static_cast<short>(b);
  return table;
}
constexpr auto inverse = make_inverse();

}  // namespace

void append_byte_level(std::string& out, std::string_view bytes) {
  for (const char b : bytes) append_utf8(out, alphabet[static_cast<unsigned char>(b)]);
}

std::optional<std::string> from_byte_level(std::string_view spelled) {
  std::string bytes;
  while (!spelled.empty()) {
    const char32_t c = take_character(spelled);
    if (c >= inverse.size() || inverse[c] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(inverse[c]));
  }
  return bytes;
}

}  // namespace weir::core
