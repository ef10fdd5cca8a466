#include "core/grammar/notation/grammar_scanner.h"

#include <charconv>

#include "core/text/tokenizer/unicode.h"

namespace weir::core::grammar {
namespace {

std::optional<char32_t> hex_digit(char c) {
  if (is_decimal(c)) return static_cast<char32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<char32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<char32_t>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_line_end(char c) { return c == '\n' || c == '\r'; }
bool is_name_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_terminal_name(std::string_view name) {
  const auto first = name.find_first_not_of('_');
  return first != name.npos && name[first] >= 'A' && name[first] <= 'Z';
}

grammar_scanner::grammar_scanner(std::string_view source) : text_(source) {
  if (source.size() > most_bytes) refuse_at(most_bytes, "a grammar of more than {} bytes", most_bytes);
}

bool grammar_scanner::take(char c) {
  if (!more() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool grammar_scanner::take(std::string_view what) {
  if (!looks_at(what)) return false;
  at_ += what.size();
  return true;
}

char32_t grammar_scanner::raw_character() {
  if (!more()) refuse("a source that ends too early");
  const auto step = next_utf8(text_.substr(at_));
  if (step.what != utf8_step::kind::whole) refuse("a byte that is not UTF-8");
  auto character = text_.substr(at_, step.size);
  at_ += step.size;
  return take_character(character);
}

char32_t grammar_scanner::hex(std::size_t digits) {
  char32_t c = 0;
  for (std::size_t i = 0; i < digits; ++i, ++at_) {
    const auto d = hex_digit(peek());
    if (!d) refuse("an escape that needs {} hexadecimal digits", digits);
    c = c << 4 | *d;
  }
  return c;
}

char32_t grammar_scanner::escape() {
  const auto begin = at_ - 1;
  if (!more()) refuse_at(begin, "a backslash with nothing behind it");
  const auto whole = [&](char32_t c) {
    if (c > 0x10FFFF) refuse_at(begin, "a code point above U+10FFFF");
    if (c >= 0xD800 && c <= 0xDFFF) refuse_at(begin, "half of a surrogate pair, which no text has");
    return c;
  };
  const char c = text_[at_++];
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    case '0':
      return 0;
    case 'x':
      return hex(2);
    case 'U':
      return whole(hex(8));
    case 'u': {
      const auto high = hex(4);
      if (high < 0xD800 || high > 0xDBFF || !looks_at("\\u")) return whole(high);
      at_ += 2;
      const auto low = hex(4);
      if (low < 0xDC00 || low > 0xDFFF) return whole(high);
      return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    default:
      break;
  }
  const auto u = static_cast<unsigned char>(c);
  if (u <= 0x20 || u >= 0x7F || is_name_letter(c) || is_decimal(c))
    refuse_at(begin, "an escape that is not known");
  return u;
}

std::optional<std::uint32_t> grammar_scanner::count() {
  std::uint32_t n = 0;
  const auto* const first = text_.data() + at_;
  const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), n);
  if (end == first) return std::nullopt;
  if (error != std::errc() || n == unbounded) refuse("a count that is too large");
  at_ += static_cast<std::size_t>(end - first);
  return n;
}

grammar_scanner::counts grammar_scanner::counts_in_braces() {
  const auto opened = at_ - 1;
  const auto blanks = [&] { take_while([](char c) { return c == ' ' || c == '\t'; }); };
  blanks();
  const auto min = count();
  if (!min) refuse_at(opened, "a count in braces without a minimum");
  counts out{*min, *min};
  blanks();
  if (take(',')) {
    blanks();
    out.max = count().value_or(unbounded);
    blanks();
  }
  if (!take('}')) refuse_at(opened, "a count in braces that is not {{m}}, {{m,}} or {{m,n}}");
  if (out.max < out.min) refuse_at(opened, "a count whose maximum is below its minimum");
  return out;
}

}  // namespace weir::core::grammar
