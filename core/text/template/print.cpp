// How values are written: Python's str() and repr(), and JSON.
#include <utf8proc.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "core/text/template/value.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::jinja {
namespace {

// Python's repr() of a float: the shortest digits that read back, as 1.5, 1e-05 or 1e+16.
std::string float_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char digits[40];
  const double size = std::abs(d);
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  std::string s(digits, std::to_chars(digits, digits + sizeof digits, d, format).ptr);
  if (!scientific && s.find('.') == s.npos) s += ".0";
  return s;
}

// Calls piece(bytes, from_client) for each run of a text that has one origin. A character for which stops()
// holds is a run of its own.
template <class Stops, class Piece>
void for_each_run(const text& t, Stops stops, Piece piece) {
  auto mark = t.content.begin();
  std::size_t run = 0, at = 0;
  const auto flush = [&](bool client) {
    if (run < at) piece(std::string_view(t.bytes).substr(run, at - run), client);
    run = at;
  };
  bool client = false;
  while (at < t.bytes.size()) {
    while (mark != t.content.end() && mark->end <= at) ++mark;
    const bool now = mark != t.content.end() && mark->begin <= at;
    if (now != client) flush(client);
    client = now;
    const std::size_t size = character_size(t.bytes[at]);
    if (stops(std::string_view(t.bytes).substr(at, size))) {
      flush(client);
      at += size;
      flush(client);
    } else {
      at += size;
    }
  }
  flush(client);
}

char32_t only_character(std::string_view s) { return take_character(s); }

bool is_printable(char32_t c) {
  if (c < 0x7f) return c >= 0x20;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string python_escape(char32_t c, char quote) {
  const auto n = static_cast<std::uint32_t>(c);
  if (c == static_cast<unsigned char>(quote) || c == U'\\') return fmt::format("\\{}", static_cast<char>(n));
  if (c == U'\n') return "\\n";
  if (c == U'\r') return "\\r";
  if (c == U'\t') return "\\t";
  if (n < 0x100) return fmt::format("\\x{:02x}", n);
  return n < 0x10000 ? fmt::format("\\u{:04x}", n) : fmt::format("\\U{:08x}", n);
}

void quote_text(text_builder& out, const text& t) {
  const bool single = t.bytes.find('\'') != t.bytes.npos, both = t.bytes.find('"') != t.bytes.npos;
  const char quote = single && !both ? '"' : '\'';
  const auto special = [quote](std::string_view one) {
    const char32_t c = only_character(one);
    return c == static_cast<unsigned char>(quote) || c == U'\\' || !is_printable(c);
  };
  out.add(std::string_view(&quote, 1));
  for_each_run(t, special, [&](std::string_view run, bool client) {
    if (special(run))
      out.add(python_escape(only_character(run), quote), client);
    else
      out.add(run, client);
  });
  out.add(std::string_view(&quote, 1));
}

void print_items(text_builder& out, const list& l) {
  out.add(l.tuple ? "(" : "[");
  for (std::size_t i = 0; i < l.items.size(); ++i) {
    if (i) out.add(", ");
    print_quoted(out, l.items[i]);
  }
  out.add(l.tuple ? (l.items.size() == 1 ? ",)" : ")") : "]");
}

void print_members(text_builder& out, const dict& d) {
  out.add("{");
  bool first = true;
  for (const auto& [key, v] : d.members) {
    if (!std::exchange(first, false)) out.add(", ");
    print_quoted(out, key);
    out.add(": ");
    print_quoted(out, v);
  }
  out.add("}");
}

// Everything but strings, which str() and repr() write differently.
void print_other(text_builder& out, const value& v) {
  if (v.is_undefined()) return;
  if (v.is_none()) return out.add("None");
  if (const auto* b = v.get<bool>()) return out.add(*b ? "True" : "False");
  if (const auto* n = v.get<std::int64_t>()) return out.add(std::to_string(*n));
  if (const auto* d = v.get<double>()) return out.add(float_text(*d));
  if (const list* l = v.as_list()) return print_items(out, *l);
  if (const dict* d = v.as_dict()) return print_members(out, *d);
  out.add(fmt::format("<{}>", v.type_name()));
}

std::string json_escape(char32_t c) {
  switch (c) {
    case U'"':
      return "\\\"";
    case U'\\':
      return "\\\\";
    case U'\n':
      return "\\n";
    case U'\r':
      return "\\r";
    case U'\t':
      return "\\t";
    case U'\b':
      return "\\b";
    case U'\f':
      return "\\f";
    default:
      break;
  }
  const auto n = static_cast<std::uint32_t>(c);
  if (n < 0x10000) return fmt::format("\\u{:04x}", n);
  const std::uint32_t above = n - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF));
}

void json_string(text_builder& out, const text& t, bool ascii) {
  const auto special = [ascii](std::string_view one) {
    const auto c = static_cast<unsigned char>(one.front());
    return c < 0x20 || c == '"' || c == '\\' || (ascii && c >= 0x80);
  };
  out.add("\"");
  for_each_run(t, special, [&](std::string_view run, bool client) {
    if (special(run))
      out.add(json_escape(only_character(run)), client);
    else
      out.add(run, client);
  });
  out.add("\"");
}

// Writes one value, indented as json.dumps() does it.
class json_writer {
 public:
  json_writer(text_builder& out, budget& b, const json_style& style)
      : out_(out),
        budget_(b),
        style_(style),
        between_(style.between.value_or(style.indent ? "," : ", ")),
        behind_key_(style.behind_key.value_or(": ")) {}

  void write(const value& v) {
    if (v.is_none()) return out_.add("null");
    if (const auto* t = v.get<bool>()) return out_.add(*t ? "true" : "false");
    if (const auto* d = v.get<double>()) return out_.add(json_float(*d));
    if (const text* t = v.as_text()) return json_string(out_, *t, style_.ascii);
    if (const list* l = v.as_list()) return write_list(*l);
    if (const dict* d = v.as_dict()) return write_dict(*d);
    if (v.get<std::int64_t>()) return print(out_, v);
    fail("a {} cannot be written as JSON", v.type_name());
  }

 private:
  static std::string json_float(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return float_text(d);
  }

  void new_line() {
    if (!style_.indent) return;
    out_.add("\n");
    for (std::uint32_t i = 0; i < depth_; ++i) out_.add(*style_.indent);
  }

  template <class Items, class Write>
  void write_all(const char* open, const char* close, const Items& items, Write write) {
    out_.add(open);
    ++depth_;
    bool first = true;
    for (const auto& item : items) {
      if (!std::exchange(first, false)) out_.add(between_);
      new_line();
      write(item);
    }
    --depth_;
    if (!items.empty()) new_line();
    out_.add(close);
  }

  void write_list(const list& l) {
    write_all("[", "]", l.items, [this](const value& v) { write(v); });
  }

  void write_dict(const dict& d) {
    std::vector<std::pair<text_ptr, const value*>> members;
    for (const auto& [key, v] : d.members) {
      members.emplace_back(key_text(key), &v);
      const auto& bytes = members.back().first->bytes;
      if (style_.sorted)
        budget_.step((1 + bytes.size() / 32) * static_cast<unsigned>(std::bit_width(d.members.size())));
    }
    if (style_.sorted)
      std::ranges::stable_sort(members, {},
                               [](const auto& m) -> const std::string& { return m.first->bytes; });
    write_all("{", "}", members, [this](const auto& m) {
      json_string(out_, *m.first, style_.ascii);
      out_.add(behind_key_);
      write(*m.second);
    });
  }

  // A key that is no string is written as one.
  text_ptr key_text(const value& key) {
    if (const auto* t = key.get<text_ptr>()) return *t;
    text_builder word(budget_);
    json_writer(word, budget_, {}).write(key);
    return word.finish();
  }

  text_builder& out_;
  budget& budget_;
  const json_style& style_;
  const std::string between_, behind_key_;
  std::uint32_t depth_ = 0;
};

}  // namespace

void print(text_builder& out, const value& v) {
  if (const text* t = v.as_text()) return out.add(*t);
  print_other(out, v);
}

void print_quoted(text_builder& out, const value& v) {
  if (const text* t = v.as_text()) return quote_text(out, *t);
  if (v.is_undefined()) return out.add("Undefined");
  print_other(out, v);
}

text_ptr to_text(budget& b, const value& v) {
  if (const auto* t = v.get<text_ptr>()) return *t;
  text_builder out(b);
  print(out, v);
  return out.finish();
}

void print_json(text_builder& out, budget& b, const value& v, const json_style& style) {
  json_writer(out, b, style).write(v);
}

}  // namespace weir::core::jinja
