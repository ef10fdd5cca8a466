// Translation of Oniguruma's patterns to PCRE2's. Most patterns mean the same in both; each difference is a
// case below.
#include "core/text/tokenizer/regex.h"

namespace weir::core {
namespace {

[[noreturn]] void refuse(std::string_view what) {
  throw refusal{make_error(errc::not_supported, "{} in a pattern is not supported yet", what)};
}

// In Oniguruma, \s is Unicode's White_Space, \w includes marks and connectors, \h is a hexadecimal digit.
constexpr std::string_view word_set = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

class translator {
 public:
  explicit translator(std::string_view pattern) : rest_(pattern) {}

  std::string run() {
    while (!rest_.empty()) {
      if (rest_[0] == '\\') {
        escape_outside();
      } else if (rest_[0] == '[') {
        set();
      } else if (rest_[0] == '(') {
        group();
      } else if (rest_[0] == '}' && rest_.starts_with("}+") && interval_) {
        refuse("'{n,m}+'");  // possessive in PCRE2, a repeated repetition in Oniguruma
      } else {
        if (rest_[0] == '{') interval_ = rest_.size() > 1 && rest_[1] >= '0' && rest_[1] <= '9';
        copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  void copy(std::size_t n) {
    n = std::min(n, rest_.size());
    out_ += rest_.substr(0, n);
    rest_.remove_prefix(n);
  }
  // Writes `text` in place of an escape of two bytes.
  void put(std::string_view text) {
    out_ += text;
    rest_.remove_prefix(2);
  }

  // Translates an escape that means the same inside and outside a set; false if it is not one of these.
  bool escape_anywhere() {
    if (rest_.size() < 2) refuse("a lone '\\'");
    switch (rest_[1]) {
      case 's':
        put(R"(\p{wspace})");
        return true;
      case 'S':
        put(R"(\P{wspace})");
        return true;
      case 'd':
        put(R"(\p{Nd})");
        return true;
      case 'D':
        put(R"(\P{Nd})");
        return true;
      case 'u':
        if (rest_.size() < 6) refuse("'\\u'");
        out_ += fmt::format("\\x{{{}}}", rest_.substr(2, 4));
        rest_.remove_prefix(6);
        return true;
      case 'p':
      case 'P':
        copy(rest_.find('}') == rest_.npos ? 2 : rest_.find('}') + 1);
        return true;
      default:
        return false;
    }
  }

  void escape_outside() {
    if (escape_anywhere()) return;
    switch (rest_[1]) {
      case 'w':
        put(fmt::format("[{}]", word_set));
        return;
      case 'W':
        put(fmt::format("[^{}]", word_set));
        return;
      case 'h':
        put("[0-9A-Fa-f]");
        return;
      case 'H':
        put("[^0-9A-Fa-f]");
        return;
      default:
        copy(2);
    }
  }

  void escape_inside() {
    if (escape_anywhere()) return;
    switch (rest_[1]) {
      case 'w':
        put(word_set);
        return;
      case 'h':
        put("0-9A-Fa-f");
        return;
      case 'W':
      case 'H':
        refuse("a negated class inside a set");
      default:
        copy(2);
    }
  }

  // Oniguruma allows a set inside a set and takes their union. The output has the members in one set.
  void set() {
    copy(1);
    if (rest_.starts_with('^')) copy(1);
    if (rest_.starts_with(']')) copy(1);
    for (int depth = 1; depth > 0;) {
      if (rest_.empty()) refuse("a set without its ']'");
      if (rest_[0] == '\\') {
        escape_inside();
      } else if (rest_.starts_with("&&")) {
        refuse("'&&'");
      } else if (rest_.starts_with("[:")) {
        copy(rest_.find(":]") == rest_.npos ? 2 : rest_.find(":]") + 2);
      } else if (rest_.starts_with("[^")) {
        refuse("a negated set inside a set");
      } else if (rest_[0] == '[') {
        ++depth;
        rest_.remove_prefix(1);
      } else if (rest_[0] == ']') {
        --depth;
        if (depth > 0) rest_.remove_prefix(1);
        if (depth == 0) copy(1);
      } else {
        copy(1);
      }
    }
  }

  // (?m) means "dot matches newline" in Ruby's syntax and something else in PCRE2.
  void group() {
    const std::size_t letters = rest_.starts_with("(?") ? rest_.find_first_not_of("imx-", 2) : rest_.npos;
    if (letters != rest_.npos && (rest_[letters] == ':' || rest_[letters] == ')') &&
        rest_.substr(2, letters - 2).find('m') != rest_.npos) {
      refuse("'(?m)'");
    }
    copy(1);
  }

  std::string_view rest_;
  std::string out_;
  bool interval_ = false;  // the latest '{' begins a repetition such as {n,m}
};

}  // namespace

std::string to_pcre2(std::string_view pattern) { return translator(pattern).run(); }

}  // namespace weir::core
