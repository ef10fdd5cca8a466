#include "core/grammar/regex/regex_scanner.h"

#include <charconv>

#include "core/text/tokenizer/unicode.h"

namespace weir::core::grammar {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::optional<unsigned> hex_digit(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

constexpr bool is_high_surrogate(char32_t c) { return c >= 0xD800 && c <= 0xDBFF; }
constexpr bool is_low_surrogate(char32_t c) { return c >= 0xDC00 && c <= 0xDFFF; }

code_points just(char32_t c) { return {c, c}; }

}  // namespace

void regex_scanner::refuse_at(std::size_t offset, std::string what) const {
  throw regex_refusal{{offset, std::move(what)}};
}

bool regex_scanner::take(char c) {
  if (peek() != c || done()) return false;
  ++at_;
  return true;
}

bool regex_scanner::take(std::string_view what) {
  if (text_.substr(at_, what.size()) != what) return false;
  at_ += what.size();
  return true;
}

std::optional<std::uint32_t> regex_scanner::number() {
  std::uint32_t n = 0;
  const auto* const begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), n);
  if (end == begin) return std::nullopt;
  if (error != std::errc() || n == unbounded) refuse("a count that is too large");
  at_ += static_cast<std::size_t>(end - begin);
  return n;
}

bool regex_scanner::at_quantifier() const {
  const char c = peek();
  if (done()) return false;
  if (c == '*' || c == '+' || c == '?') return true;
  return c == '{' && braces().has_value();
}

std::optional<regex_scanner::count> regex_scanner::braces() const {
  auto look = *this;
  if (!look.take('{')) return std::nullopt;
  const auto opened = at_;
  if (look.peek() == ',') {
    ++look.at_;
    if (look.number() && look.take('}')) refuse_at(opened, "a count without a minimum");
    return std::nullopt;
  }
  const auto min = look.number();
  if (!min) return std::nullopt;
  auto max = min;
  if (look.take(',')) {
    max = look.number();
    if (!max) max = unbounded;
  }
  if (!look.take('}')) return std::nullopt;
  if (*max < *min) refuse_at(opened, "a count whose maximum is below its minimum");
  return count{*min, *max};
}

std::optional<regex_scanner::count> regex_scanner::quantifier() {
  std::optional<count> out;
  if (take('*'))
    out = count{0, unbounded};
  else if (take('+'))
    out = count{1, unbounded};
  else if (take('?'))
    out = count{0, 1};
  else if (peek() == '{' && (out = braces()))
    at_ = text_.find('}', at_) + 1;
  if (!out) return out;
  if (!take('?') && peek() == '+') refuse("a possessive quantifier");
  if (at_quantifier()) refuse("a quantifier behind a quantifier");
  return out;
}

char32_t regex_scanner::raw_character() {
  const auto step = next_utf8(text_.substr(at_));
  if (step.what != utf8_step::kind::whole) refuse("a byte that is not UTF-8");
  char32_t c = static_cast<unsigned char>(text_[at_]);
  if (step.size > 1) {
    c &= 0x7Fu >> step.size;
    for (std::size_t i = 1; i < step.size; ++i)
      c = c << 6 | (static_cast<unsigned char>(text_[at_ + i]) & 0x3Fu);
  }
  at_ += step.size;
  return c;
}

char32_t regex_scanner::hex(std::size_t digits) {
  char32_t c = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const auto d = hex_digit(peek());
    if (done() || !d) refuse("an escape with too few hexadecimal digits");
    c = c << 4 | *d;
    ++at_;
  }
  return c;
}

char32_t regex_scanner::unicode_escape() {
  if (take('{')) {
    char32_t c = 0;
    std::size_t digits = 0;
    for (; hex_digit(peek()) && more(); ++at_, ++digits) {
      c = c << 4 | *hex_digit(peek());
      if (c > 0x10FFFF) refuse("a code point above U+10FFFF");
    }
    if (digits == 0 || !take('}')) refuse("an escape \\u{} without hexadecimal digits");
    return c;
  }
  const auto c = hex(4);
  if (!is_high_surrogate(c) || text_.substr(at_, 2) != "\\u") return c;
  auto pair = *this;  // reads the second half of a pair, if one follows
  pair.at_ += 2;
  if (pair.peek() == '{') return c;
  const auto low = pair.hex(4);
  if (!is_low_surrogate(low)) return c;
  at_ = pair.at_;
  return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
}

code_points regex_scanner::named_property(bool negated) {
  const auto at = at_;
  std::string_view name;
  if (take('{')) {
    const auto end = text_.find('}', at_);
    if (end == text_.npos) refuse("\\p{ that is not closed");
    name = text_.substr(at_, end - at_);
    at_ = end + 1;
    if (!name.empty() && name[0] == '^') name.remove_prefix(1), negated = !negated;
  } else {
    name = text_.substr(at_, 1);
    ++at_;
  }
  const auto set = unicode_property(name);
  if (!set) refuse_at(at, "the Unicode property \"" + std::string(name.substr(0, 40)) + "\"");
  return negated ? set->negated() : *set;
}

// `single`: the character, where the escape means exactly one (or a surrogate, which no text has).
code_points regex_scanner::escape(bool in_class, std::optional<char32_t>& single) {
  const auto at = at_ - 1;
  if (done()) refuse_at(at, "a backslash with nothing behind it");
  const auto one = [&](char32_t c) {
    single = c;
    return just(c);
  };
  if (static_cast<unsigned char>(peek()) >= 0x80) return one(raw_character());
  const char c = text_[at_++];
  switch (c) {
    case 'd':
      return ecma_digits();
    case 'D':
      return ecma_digits().negated();
    case 'w':
      return ecma_word();
    case 'W':
      return ecma_word().negated();
    case 's':
      return ecma_space();
    case 'S':
      return ecma_space().negated();
    case 'p':
      return named_property(false);
    case 'P':
      return named_property(true);
    case 't':
      return one('\t');
    case 'n':
      return one('\n');
    case 'r':
      return one('\r');
    case 'f':
      return one('\f');
    case 'v':
      return one('\v');
    case 'a':
      return one('\a');
    case 'e':
      return one(0x1B);
    case 'x':
      return one(hex(2));
    case 'u':
      return one(unicode_escape());
    case 'c':
      if (!is_letter(peek()) || done()) refuse_at(at, "\\c without a letter");
      return one(static_cast<char32_t>(text_[at_++] & 0x1F));
    case '0':
      if (is_digit(peek()) && more()) refuse_at(at, "an octal escape");
      return one(0);
    case 'b':
      if (in_class) return one('\b');
      break;
    case 'k':
      refuse_at(at, "a back-reference");
    default:
      break;
  }
  if (c >= '1' && c <= '9') refuse_at(at, "a back-reference");
  if (is_letter(c)) refuse_at(at, std::string("the escape \\") + c);
  return one(static_cast<unsigned char>(c));
}

code_points regex_scanner::character(bool ignore_case) {
  std::optional<char32_t> single;
  const auto set = take('\\') ? escape(false, single) : just(raw_character());
  return ignore_case ? set.any_case() : set;
}

code_points regex_scanner::character_class(bool ignore_case) {
  const auto opened = at_;
  take('[');
  const bool negated = take('^');
  code_points set;
  const auto member = [&](std::optional<char32_t>& single) {
    if (take('\\')) return escape(true, single);
    single = raw_character();
    return just(*single);
  };
  while (!take(']')) {
    if (done()) refuse_at(opened, "a character class that is not closed");
    const auto at = at_;
    std::optional<char32_t> first, last;
    const auto left = member(first);
    set.add(left);
    const bool range = peek() == '-' && text_.substr(at_, 2) != "-]" && at_ + 1 < text_.size();
    if (!range || !first) continue;  // `-` behind \d and the like is itself
    auto after = *this;
    ++after.at_;
    std::optional<char32_t> end;
    const auto right = after.take('\\') ? after.escape(true, end) : (end = after.raw_character(), just(*end));
    if (!end) continue;
    if (*end < *first) refuse_at(at, "a range of characters in the wrong order");
    *this = after;
    set.add(*first, *end);
  }
  if (ignore_case) set = set.any_case();
  return negated ? set.negated() : set;
}

void regex_scanner::group_name() {
  const auto at = at_;
  while (more() && (is_letter(peek()) || is_digit(peek()) || peek() == '_' || peek() == '$')) ++at_;
  if (at_ == at || !take('>')) refuse_at(at, "a name of a group that is not letters, digits and _");
}

void regex_scanner::flags_of_group(bool& ignore_case, bool& dot_all) {
  bool on = true;
  for (; more() && peek() != ':' && peek() != ')'; ++at_) {
    if (peek() == '-' && on)
      on = false;
    else if (peek() == 'i')
      ignore_case = on;
    else if (peek() == 's')
      dot_all = on;
    else if (peek() == 'u' && on)
      continue;
    else if (is_letter(peek()))
      refuse(std::string("the flag (?") + peek() + ")");
    else
      refuse("this kind of group");
  }
}

}  // namespace weir::core::grammar
