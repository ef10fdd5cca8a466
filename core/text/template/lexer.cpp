#include "core/text/template/lexer.h"

#include <algorithm>

#include "core/text/template/text.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::jinja {
namespace {

using kind = token::kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool opens_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool in_name(char c) { return opens_name(c) || is_digit(c); }

// Every newline becomes \n, and one at the end of the source goes.
std::string with_plain_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class lexer {
 public:
  explicit lexer(std::string_view source) : source_(with_plain_newlines(source)) {}

  std::vector<token> run() {
    while (at_ < source_.size()) read_data();
    add(kind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void wrong(std::string why) const { throw failure{std::move(why), line_}; }

  void add(kind what, std::string text) { tokens_.push_back({what, std::move(text), line_}); }

  char peek(std::size_t n = 0) const { return at_ + n < source_.size() ? source_[at_ + n] : '\0'; }
  bool here(std::string_view s) const { return std::string_view(source_).substr(at_).starts_with(s); }
  std::string_view rest() const { return std::string_view(source_).substr(at_); }

  // Moves on, counting lines.
  void skip(std::size_t n) {
    for (; n > 0; --n) line_ += source_[at_++] == '\n';
  }
  void skip_space() { skip(leading_space(rest())); }

  // Text up to the next tag, and the tag.
  void read_data() {
    const std::size_t tag = find_tag(at_);
    const char opens = tag < source_.size() ? source_[tag + 1] : '\0';
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    add_data(tag, opens, sign);
    if (opens == '\0') return;
    skip(2 + ((sign == '-' || sign == '+') && opens != '\0' ? 1 : 0));
    if (opens == '#') return read_comment();
    if (opens == '%' && begins_raw()) return read_raw();
    add(opens == '%' ? kind::block_begin : kind::variable_begin, "");
    read_code(opens == '%' ? kind::block_end : kind::variable_end);
  }

  std::size_t find_tag(std::size_t from) const {
    for (std::size_t i = source_.find('{', from); i != std::string::npos; i = source_.find('{', i + 1))
      if (i + 1 < source_.size() && (source_[i + 1] == '%' || source_[i + 1] == '{' || source_[i + 1] == '#'))
        return i;
    return source_.size();
  }

  // Adds the text before the tag at `tag`, without the white space that the tag removes.
  void add_data(std::size_t tag, char opens, char sign) {
    std::string_view data = std::string_view(source_).substr(at_, tag - at_);
    const std::size_t size = data.size();
    if (sign == '-' && opens != '\0') {
      data.remove_suffix(trailing_space(data));
    } else if (sign != '+' && (opens == '%' || opens == '#')) {
      const std::size_t newline = data.rfind('\n');
      const std::size_t line = newline == data.npos ? 0 : newline + 1;
      const bool starts_line = line > 0 || line_begins_;
      if (starts_line && leading_space(data.substr(line)) == size - line) data = data.substr(0, line);
    }
    if (!data.empty()) add(kind::data, std::string(data));
    skip(size);
  }

  // Behind the end of a tag: `-` removes all white space, and a block's or comment's end one newline.
  void end_tag(char sign, bool trims) {
    const std::size_t before = at_;
    if (sign == '-')
      skip_space();
    else if (sign != '+' && trims && peek() == '\n')
      skip(1);
    line_begins_ = at_ > before && source_[at_ - 1] == '\n';
  }

  void read_comment() {
    const std::size_t close = source_.find("#}", at_);
    if (close == std::string::npos) wrong("a comment does not end");
    const char sign = close > at_ ? source_[close - 1] : '\0';
    skip(close + 2 - at_);
    end_tag(sign, true);
  }

  bool begins_raw() {
    std::string_view s = rest();
    s.remove_prefix(leading_space(s));
    if (!s.starts_with("raw")) return false;
    s.remove_prefix(3);
    s.remove_prefix(leading_space(s));
    return s.starts_with("%}") || s.starts_with("-%}");
  }

  void read_raw() {
    skip(source_.find("%}", at_) - at_);
    const bool strips = source_[at_ - 1] == '-';
    skip(2);
    if (strips) skip_space();
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find("{%", tag);
      if (tag == std::string::npos) wrong("a raw block does not end");
      std::string_view s = std::string_view(source_).substr(tag + 2);
      if (s.starts_with('-') || s.starts_with('+')) s.remove_prefix(1);
      s.remove_prefix(leading_space(s));
      if (!s.starts_with("endraw")) continue;
      s.remove_prefix(6);
      s.remove_prefix(leading_space(s));
      const char sign = s.empty() ? '\0' : s.front();
      if (sign == '-' || sign == '+') s.remove_prefix(1);
      if (!s.starts_with("%}")) continue;
      line_begins_ = false;
      add_data(tag, '%', source_[tag + 2]);
      skip(source_.size() - s.size() + 2 - at_);
      return end_tag(sign, true);
    }
  }

  // Tokens up to the end of the tag.
  void read_code(kind end) {
    const std::string_view close = end == kind::block_end ? "%}" : "}}";
    std::string open;  // brackets
    for (;;) {
      skip_space();
      if (at_ >= source_.size()) wrong("a tag does not end");
      const bool sign = peek() == '-' || (peek() == '+' && end == kind::block_end);
      if (open.empty() && (here(close) || (sign && rest().substr(1).starts_with(close)))) {
        const char which = sign ? peek() : '\0';
        add(end, "");
        skip(sign ? 3 : 2);
        return end_tag(which, end == kind::block_end);
      }
      read_token(open);
    }
  }

  void read_token(std::string& open) {
    const char c = peek();
    if (opens_name(c)) return read_name();
    if (is_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string(c);
    for (const char* two : {"**", "//", "==", "!=", "<=", ">="})
      if (here(two)) return read_operator(2);
    if (std::string_view("([{").find(c) != std::string_view::npos) open += c;
    if (std::string_view(")]}").find(c) != std::string_view::npos) {
      const char match = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || open.back() != match) wrong(fmt::format("'{}' closes nothing", c));
      open.pop_back();
    }
    if (std::string_view("+-*/%~()[]{}<>=.:,|").find(c) == std::string_view::npos)
      wrong(fmt::format("'{}' has no meaning here", rest().substr(0, character_size(c))));
    read_operator(1);
  }

  void read_operator(std::size_t size) {
    add(kind::op, std::string(rest().substr(0, size)));
    skip(size);
  }

  void read_name() {
    std::size_t size = 1;
    while (in_name(peek(size))) ++size;
    add(kind::name, std::string(rest().substr(0, size)));
    skip(size);
  }

  void read_number() {
    std::size_t size = 0;
    bool floating = false;
    const bool based = peek() == '0' && std::string_view("xXoObB").find(peek(1)) != std::string_view::npos &&
                       peek(1) != '\0';
    const auto digits = [&] {
      while (is_digit(peek(size)) || (peek(size) == '_' && is_digit(peek(size + 1)))) ++size;
    };
    if (based) {
      size = 2;
      while (in_name(peek(size))) ++size;
    } else {
      digits();
      const bool behind_point = at_ > 0 && source_[at_ - 1] == '.';  // a.0.1 is two items
      if (!behind_point && peek(size) == '.' && is_digit(peek(size + 1))) {
        floating = true;
        ++size;
        digits();
      }
      const bool exponent = peek(size) == 'e' || peek(size) == 'E';
      const std::size_t sign = exponent && (peek(size + 1) == '+' || peek(size + 1) == '-') ? 1 : 0;
      if (exponent && is_digit(peek(size + 1 + sign))) {
        floating = true;
        size += 1 + sign;
        digits();
      }
    }
    std::string text(rest().substr(0, size));
    std::erase(text, '_');
    add(floating ? kind::floating : kind::integer, std::move(text));
    skip(size);
  }

  void read_string(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) wrong("a string does not end");
    const std::string_view body = std::string_view(source_).substr(at_ + 1, end - at_ - 1);
    add(kind::string, unescaped(body));
    skip(end + 1 - at_);
  }

  // The escapes of a Python string. An unknown one stands for itself, with its backslash.
  std::string unescaped(std::string_view body) const {
    std::string out;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i] != '\\' || i + 1 == body.size()) {
        out += body[i];
        continue;
      }
      const char c = body[++i];
      static constexpr std::string_view names = "abfnrtv\\'\"", stand = "\a\b\f\n\r\t\v\\'\"";
      if (const auto n = names.find(c); n != names.npos)
        out += stand[n];
      else if (c == 'x' || c == 'u' || c == 'U')
        i += read_code_point(body.substr(i + 1), c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
      else if (c >= '0' && c <= '7')
        i += read_octal(body.substr(i), out) - 1;
      else if (c != '\n')
        out += {'\\', c};
    }
    return out;
  }

  std::size_t read_code_point(std::string_view digits, std::size_t count, std::string& out) const {
    std::uint32_t code = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const char c = i < digits.size() ? digits[i] : '\0';
      const auto n = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
      if (c == '\0' || n == std::string_view::npos || (n < 10) != is_digit(c))
        wrong("a broken escape in a string");
      code = code * 16 + static_cast<std::uint32_t>(n);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) wrong("an escape in a string is no character");
    append_utf8(out, code);
    return count;
  }

  static std::size_t read_octal(std::string_view digits, std::string& out) {
    std::uint32_t code = 0;
    std::size_t n = 0;
    while (n < 3 && n < digits.size() && digits[n] >= '0' && digits[n] <= '7')
      code = code * 8 + static_cast<std::uint32_t>(digits[n++] - '0');
    append_utf8(out, code);
    return n;
  }

  std::string source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_begins_ = true;  // the text behind the last tag begins a line
  std::vector<token> tokens_;
};

}  // namespace

std::vector<token> cut_into_tokens(std::string_view source) {
  if (!is_valid_utf8(source)) throw failure{"the template is not valid UTF-8", 1};
  return lexer(source).run();
}

}  // namespace weir::core::jinja
