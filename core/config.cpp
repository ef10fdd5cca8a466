#include "core/config.h"

#include <charconv>

namespace weir::core {
namespace {

struct power {
  std::string_view letter;
  int shift;
};
constexpr power powers_of_1024[] = {{"G", 30}, {"M", 20}, {"K", 10}, {"", 0}};
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 50;

}  // namespace

std::string text_of(const setting& s, std::uint64_t n) {
  if (n == 0 && *s.zero) return s.zero;
  for (const auto& [letter, shift] : powers_of_1024)
    if (s.powers && n != 0 && n % (std::uint64_t{1} << shift) == 0)
      return fmt::format("{}{}", n >> shift, letter);
  return std::to_string(n);
}

result<std::uint64_t> parse_number(const setting& s, std::string_view text) {
  if (*s.zero && text == s.zero) return 0;
  std::uint64_t n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  const auto letter = text.substr(static_cast<std::size_t>(end - text.data()));
  if (ec == std::errc{} && (n > 0 || !*s.zero))
    for (const auto& p : powers_of_1024)
      if (letter == p.letter && (s.powers ? n <= most_bytes >> p.shift : p.shift == 0)) return n << p.shift;
  return bad_param(s.name, "--{} must be {}{}{}{}, not '{}'", s.name, s.powers ? "bytes" : "a number",
                   *s.zero ? " above 0" : "", s.powers ? ", or a number and K, M or G" : "",
                   *s.zero ? fmt::format(", or {}", s.zero) : "", text);
}

}  // namespace weir::core
