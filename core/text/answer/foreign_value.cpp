#include "core/text/answer/foreign_value.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <utility>

#include "core/text/answer/json_scan.h"

namespace weir::core {
namespace {

namespace json = boost::json;

constexpr int deepest = 64;
constexpr std::uint32_t replacement = 0xFFFD;
constexpr std::string_view white = " \t\r\n";

// Reads values of both notations. `quote`: of Gemma's strings; empty: the notation is Python's.
class value_reader {
 public:
  value_reader(std::string_view text, std::string_view quote) : text_(text), quote_(quote) {}

  std::optional<std::string> whole() {
    if (!value(0)) return std::nullopt;
    skip_white();
    if (at_ != text_.size()) return std::nullopt;
    return std::move(out_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_white() { at_ = std::min(text_.find_first_not_of(white, at_), text_.size()); }
  bool take(std::string_view s) {
    if (!text_.substr(at_).starts_with(s)) return false;
    at_ += s.size();
    return true;
  }
  bool gemma() const { return !quote_.empty(); }

  bool value(int depth) {
    skip_white();
    if (depth > deepest) return false;
    if (gemma() && text_.substr(at_).starts_with(quote_)) return gemma_string();
    const char c = peek();
    if (c == '[' || (c == '(' && !gemma())) return list(depth);
    if (c == '{') return object(depth);
    if (c == '"' || c == '\'') return python_string();
    return word();
  }

  bool list(int depth) {
    const char close = peek() == '[' ? ']' : ')';
    ++at_;
    out_ += '[';
    for (bool first = true;; first = false) {
      skip_white();
      if (take(std::string_view(&close, 1))) break;
      if (!first && !take(",")) return false;
      skip_white();
      if (!first && take(std::string_view(&close, 1))) break;  // (1,)
      if (!first) out_ += ", ";
      if (!value(depth + 1)) return false;
    }
    out_ += ']';
    return true;
  }

  bool object(int depth) {
    ++at_;
    out_ += '{';
    for (bool first = true;; first = false) {
      skip_white();
      if (take("}")) break;
      if (!first && !take(",")) return false;
      skip_white();
      if (!first && take("}")) break;
      if (!first) out_ += ", ";
      if (!key()) return false;
      skip_white();
      if (!take(":")) return false;
      out_ += ": ";
      if (!value(depth + 1)) return false;
    }
    out_ += '}';
    return true;
  }

  bool key() {
    if (gemma() && text_.substr(at_).starts_with(quote_)) return gemma_string();
    if (peek() == '"' || peek() == '\'') return python_string();
    if (!gemma()) return false;
    const auto end = text_.find(':', at_);
    if (end == text_.npos || end == at_) return false;
    out_ += json_string(text_.substr(at_, end - at_));
    at_ = end;
    return true;
  }

  bool gemma_string() {
    at_ += quote_.size();
    const auto end = text_.find(quote_, at_);
    if (end == text_.npos) return false;
    out_ += json_string(text_.substr(at_, end - at_));
    at_ = end + quote_.size();
    return true;
  }

  bool python_string() {
    const char quote = peek();
    ++at_;
    std::string said;
    for (;; ++at_) {
      if (at_ == text_.size()) return false;
      const char c = text_[at_];
      if (c == quote) break;
      if (c != '\\') {
        said += c;
      } else if (!escape(said)) {
        return false;
      }
    }
    ++at_;
    out_ += json_string(said);
    return true;
  }

  // At a backslash; leaves the place at the last character of the escape.
  bool escape(std::string& said) {
    if (++at_ == text_.size()) return false;
    constexpr std::string_view from = "ntrbfv0a\\'\"", to("\n\t\r\b\f\v\0\a\\'\"", 11);
    const char c = text_[at_];
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      const auto known = from.find(c);
      if (known == from.npos) said += '\\';
      said += known == from.npos ? c : to[known];
      return true;
    }
    if (text_.size() - at_ <= digits) return false;
    std::uint32_t code = 0;
    for (std::size_t i = 1; i <= digits; ++i) {
      const auto digit = std::string_view("0123456789abcdef").find(static_cast<char>(text_[at_ + i] | 0x20));
      if (digit == std::string_view::npos) return false;
      code = code << 4 | static_cast<std::uint32_t>(digit);
    }
    at_ += digits;
    const bool character = code < 0xD800 || (code > 0xDFFF && code < 0x110000);
    append_code_point(said, character ? code : replacement);
    return true;
  }

  bool word() {
    const auto end = std::min(text_.find_first_of(",]}): \t\r\n", at_), text_.size());
    const auto word = text_.substr(at_, end - at_);
    at_ = end;
    if (word == "True" || word == "true") return append("true");
    if (word == "False" || word == "false") return append("false");
    if (word == "None" || word == "null") return append("null");
    json_scan number;
    for (std::size_t i = 0; i < word.size(); ++i)
      if (number.take(static_cast<unsigned char>(word[i])) != json_scan::status::more) return false;
    if (word.empty() || number.take(' ') != json_scan::status::before) return false;
    return append(word);
  }
  bool append(std::string_view s) {
    out_ += s;
    return true;
  }

  const std::string_view text_, quote_;
  std::size_t at_ = 0;
  std::string out_;
};

json::value parsed(std::string_view schema) {
  boost::system::error_code failed;
  json::parse_options deep;
  deep.max_depth = json_scan::deepest;
  auto v = json::parse(json::string_view(schema.data(), schema.size()), failed, {}, deep);
  return failed ? json::value() : v;
}

enum types : json_types { text = json_text_type, number = 2, boolean = 4, null = 8, list = 16, object = 32 };

json_types named_type(std::string_view name) {
  if (name == "string") return text;
  if (name == "number" || name == "integer") return number;
  if (name == "boolean") return boolean;
  if (name == "null") return null;
  if (name == "array") return list;
  return name == "object" ? json_types{object} : 0;
}

json_types type_of(const json::value& v) {
  switch (v.kind()) {
    case json::kind::string:
      return text;
    case json::kind::bool_:
      return boolean;
    case json::kind::null:
      return null;
    case json::kind::array:
      return list;
    case json::kind::object:
      return object;
    default:
      return number;
  }
}

json_types types_of(const json::value& schema, int depth = 0) {
  const auto* o = schema.if_object();
  if (!o || depth > 8) return 0;
  json_types all = 0;
  if (const auto* t = o->if_contains("type")) {
    if (t->is_string()) return named_type(t->get_string());
    if (t->is_array())
      for (const auto& one : t->get_array())
        if (one.is_string()) all |= named_type(one.get_string());
    return all;
  }
  if (const auto* values = o->if_contains("enum"); values && values->is_array()) {
    for (const auto& v : values->get_array()) all |= type_of(v);
    return all;
  }
  for (const char* name : {"anyOf", "oneOf"})
    if (const auto* of = o->if_contains(name); of && of->is_array()) {
      for (const auto& one : of->get_array()) {
        const json_types each = types_of(one, depth + 1);
        if (each == 0) return 0;
        all |= each;
      }
      return all;
    }
  return 0;
}

}  // namespace

// Takes a character of the inside of a JSON string.
void string_reader::take(char c, std::string& out) {
  constexpr std::string_view from = "bfnrt", to = "\b\f\n\r\t";
  switch (at_) {
    case place::plain:
      if (c == '\\')
        at_ = place::escape;
      else
        give(c, out);
      return;
    case place::escape: {
      at_ = c == 'u' ? place::hex : place::plain;
      code_ = digits_ = 0;
      const auto known = from.find(c);
      if (c != 'u') give(known == from.npos ? c : to[known], out);
      return;
    }
    case place::hex:
      code_ = code_ << 4 | static_cast<std::uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
      if (++digits_ < 4) return;
      at_ = place::plain;
      give_unit(out);
      return;
  }
}

void string_reader::give(char c, std::string& out) {
  if (std::exchange(high_, 0) != 0) append_code_point(out, replacement);
  out += c;
}

void string_reader::give_unit(std::string& out) {
  const bool high = code_ >= 0xD800 && code_ < 0xDC00, low = code_ >= 0xDC00 && code_ < 0xE000;
  const std::uint32_t before = std::exchange(high_, high ? code_ : 0);
  if (before != 0 && low)
    return append_code_point(out, 0x10000 + ((before - 0xD800) << 10) + (code_ - 0xDC00));
  if (before != 0) append_code_point(out, replacement);
  if (!high) append_code_point(out, low ? replacement : code_);
}

void append_code_point(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::string unescaped(std::string_view inside) {
  string_reader r;
  std::string out;
  for (const char c : inside) r.take(c, out);
  return out;
}

void append_escaped(std::string& out, std::string_view utf8) {
  constexpr const char* digits = "0123456789abcdef";
  for (const char c : utf8) {
    const auto at = std::string_view("\"\\\b\f\n\r\t").find(c);
    if (at != std::string_view::npos) {
      out += '\\';
      out += "\"\\bfnrt"[at];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += digits[c >> 4];
      out += digits[c & 15];
    } else {
      out += c;
    }
  }
}

std::string json_string(std::string_view utf8) {
  std::string out = "\"";
  append_escaped(out, utf8);
  return out += '"';
}

std::optional<std::string> json_of_python(std::string_view literal) {
  return value_reader(literal, {}).whole();
}

std::optional<std::string> json_of_gemma(std::string_view value, std::string_view quote) {
  return value_reader(value, quote).whole();
}

parameter_types::parameter_types(std::string_view schema) {
  if (schema.empty()) return;
  auto all = parsed(schema);
  if (auto* o = all.if_object())
    if (auto* properties = o->if_contains("properties")) properties_ = std::move(*properties);
}

json_types parameter_types::of(std::string_view parameter) const {
  const auto* members = properties_.if_object();
  const auto* found =
      members ? members->if_contains(json::string_view(parameter.data(), parameter.size())) : nullptr;
  return found ? types_of(*found) : 0;
}

std::string json_of_parameter(std::string_view text, json_types wanted) {
  if (wanted == types::text) return json_string(text);
  boost::system::error_code failed;
  json::parse_options deep;
  deep.max_depth = json_scan::deepest;
  const auto v = json::parse(json::string_view(text.data(), text.size()), failed, {}, deep);
  if (!failed) {
    const json_types is = type_of(v);
    if (is != types::text && (wanted == 0 || (wanted & is) != 0)) return std::string(text);
  }
  // As templates that print values with Python's str() have taught it to models.
  constexpr std::pair<std::string_view, std::string_view> python[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  for (const auto& [said, is] : python)
    if (text == said && (wanted & json_types{said == "None" ? null : boolean}) != 0) return std::string(is);
  return json_string(text);
}

}  // namespace weir::core
