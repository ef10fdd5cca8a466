#include "tests/stranger/bytes.h"

#include <algorithm>

namespace weir::stranger {
namespace {

void one_accident(random_source& draw, std::string& text) {
  const std::size_t at = draw.below(text.size() + 1);
  const std::size_t length = std::min(draw.between(1, 32), text.size() - at);
  static constexpr char loud[] = {'\0', '\n', '\r', ' ',    ':',    ';',   ',',
                                  '"',  '{',  '[',  '\x7F', '\x80', '\xFF'};
  switch (draw.below(6)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << draw.below(8)));
      break;
    case 1:
      text.insert(at, 1, draw.pick(loud));
      break;
    case 2:
      text.insert(at, random_bytes(draw, draw.between(1, 8)));
      break;
    case 3:
      text.erase(at, length);
      break;
    case 4:
      text.insert(at, text.substr(at, length));
      break;
    default:
      for (std::size_t i = draw.between(2, 50); i > 0; --i) text.insert(at, text.substr(at, length));
  }
}

}  // namespace

std::string damaged(random_source& draw, std::string text) {
  for (std::size_t n = draw.between(1, 8); n > 0; --n) one_accident(draw, text);
  return text;
}

std::string random_bytes(random_source& draw, std::size_t n) {
  std::string bytes(n, '\0');
  for (char& b : bytes) b = draw.byte();
  return bytes;
}

std::string odd_text(random_source& draw) {
  static const std::string odd[] = {"\xFF\xFE",         "\xC0\xAF",           "\xED\xA0\x80",
                                    "\xF4\x90\x80\x80", "\xE2\x82",           "\x80",
                                    "\xEF\xBF\xBF",     "\xE2\x80\xAE",       "\xCC\x81\xCC\x81",
                                    "\xF0\x9F\x91\xA9", std::string(1, '\0'), "\xF8\x88\x80\x80\x80"};
  std::string text;
  for (std::size_t n = draw.between(1, 6); n > 0; --n) text += draw.chance(70) ? draw.pick(odd) : "a";
  return text;
}

std::string repeated(std::string_view text, std::size_t n) {
  std::string all;
  all.reserve(text.size() * n);
  for (; n > 0; --n) all += text;
  return all;
}

}  // namespace weir::stranger
