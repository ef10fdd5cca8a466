#include "net/protocol/json.h"

#include <array>
#include <charconv>
#include <cmath>

namespace weir::net {

const char* kind_of(const json::value& v) {
  switch (v.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
    default:
      return "a number";
  }
}

core::result<std::int64_t> read_integer(std::string_view name, const json::value& v) {
  if (v.is_int64()) return v.get_int64();
  if (v.is_uint64())
    return core::bad_param(std::string(name), "{}: {} is out of range", name, v.get_uint64());
  if (!v.is_double())
    return core::bad_param(std::string(name), "{} must be an integer, not {}", name, kind_of(v));
  double d = v.get_double();
  if (d != std::floor(d)) return core::bad_param(std::string(name), "{} must be an integer, not {}", name, d);
  if (std::abs(d) > 9007199254740992.0)
    return core::bad_param(std::string(name), "{}: {} is out of range", name, d);
  return static_cast<std::int64_t>(d);
}

core::result<double> read_number(std::string_view name, const json::value& v) {
  if (v.is_int64()) return static_cast<double>(v.get_int64());
  if (v.is_uint64()) return static_cast<double>(v.get_uint64());
  if (v.is_double()) return v.get_double();
  return core::bad_param(std::string(name), "{} must be a number, not {}", name, kind_of(v));
}

core::result<bool> read_bool(std::string_view name, const json::value& v) {
  if (v.is_bool()) return v.get_bool();
  return core::bad_param(std::string(name), "{} must be true or false, not {}", name, kind_of(v));
}

core::result<std::string> read_string(std::string_view name, const json::value& v) {
  if (v.is_string()) return std::string(v.get_string());
  return core::bad_param(std::string(name), "{} must be a string, not {}", name, kind_of(v));
}

core::result<std::vector<std::int64_t>> read_integers(std::string_view name, const json::value& v) {
  if (!v.is_array()) {
    return core::bad_param(std::string(name), "{} must be an array of integers, not {}", name, kind_of(v));
  }
  std::vector<std::int64_t> out;
  out.reserve(v.get_array().size());
  for (const json::value& item : v.get_array()) {
    const auto i = read_integer(name, item);
    if (!i) {  // only now, since a list may have very many items
      const auto wrong = read_integer(fmt::format("{}[{}]", name, out.size()), item);
      return core::bad_param(std::string(name), "{}", wrong.error().message);
    }
    out.push_back(*i);
  }
  return out;
}

namespace {

constexpr bool needs_escape(unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; }

void append_escaped(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default: {
      constexpr char hex[] = "0123456789abcdef";
      out += "\\u00";
      out += hex[c >> 4];
      out += hex[c & 15];
    }
  }
}

template <class T>
void append_chars(std::string& out, T value) {
  std::array<char, 32> digits;
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

}  // namespace

std::string legible(std::string_view bytes) {
  // one more than is shown, so that shortened() sees that something was cut off
  std::string out(bytes.substr(0, core::longest_shown + 1));
  for (char& c : out) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return shortened(out);
}

void append_json_text(std::string& out, std::string_view utf8) {
  std::size_t run = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    auto c = static_cast<unsigned char>(utf8[i]);
    if (!needs_escape(c)) continue;
    out.append(utf8, run, i - run);
    append_escaped(out, c);
    run = i + 1;
  }
  out.append(utf8, run, utf8.size() - run);
}

void append_json_string(std::string& out, std::string_view utf8) {
  out += '"';
  append_json_text(out, utf8);
  out += '"';
}

void append_number(std::string& out, std::int64_t value) { append_chars(out, value); }
void append_number(std::string& out, std::uint64_t value) { append_chars(out, value); }

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  append_chars(out, std::round(value * 1000.0) / 1000.0);
}

void append_key(std::string& out, std::string_view key) {
  if (!out.empty() && out.back() != '{' && out.back() != '[') out += ',';
  out += '"';
  out += key;
  out += "\":";
}

}  // namespace weir::net
