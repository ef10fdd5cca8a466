// The filters that make a text, a number or one value of their subject. sequence_filters.cpp has the others.
#include <charconv>
#include <cmath>
#include <span>

#include "core/text/template/filters.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::jinja {
namespace {

text_ptr text_of(machine& m, const value& v) { return to_text(m.memory, v); }

// A filter that is Python's method of the same name on str(subject).
template <const char* name>
value as_method(machine& m, const value& v, arguments& a) {
  return call_method(m, text_of(m, v), name, a);
}
constexpr char upper_name[] = "upper", lower_name[] = "lower", capitalize_name[] = "capitalize",
               strip_name[] = "strip", center_name[] = "center";

value absolute(machine& m, const value& v, arguments&) {
  if (!v.as_number()) fail("abs: a {} is no number", v.type_name());
  if (const auto n = v.as_integer()) return *n < 0 ? calculate(m, "-", std::int64_t{0}, *n) : value(*n);
  return std::abs(*v.as_number());
}

value attribute(machine& m, const value& v, arguments& a) {
  parameters p(m, "attr", a);
  const text_ptr name = p.need_text("name");
  p.end();
  // A dict's items do not count, as in Python.
  return v.as_dict() && !has_method(v, name->bytes) ? value() : member_of(m, v, name->bytes);
}

value otherwise(machine& m, const value& v, arguments& a) {
  parameters p(m, "default", a);
  const value* other = p.find("default_value");
  const bool empty_too = p.flag("boolean", false);
  p.end();
  if (!v.is_undefined() && (!empty_too || v.truth())) return v;
  return other ? *other : m.make_text("");
}

value escaped_text(machine& m, const value& v, arguments&) { return escaped(m.memory, *text_of(m, v)); }

value safe(machine& m, const value& v, arguments&) {
  text_builder out(m.memory);
  print(out, v);
  return out.finish(true);
}

value formatted(machine& m, const value& v, arguments& a) {
  if (!a.named.empty()) fail("format: arguments with names are not supported");
  return percent_format(m, *text_of(m, v), a.positional);
}

value indented(machine& m, const value& v, arguments& a) {
  parameters p(m, "indent", a);
  const value* width = p.find("width");
  const bool first = p.flag("first", false), blank = p.flag("blank", false);
  p.end();
  text_ptr space;
  if (width && width->as_text()) {
    space = *width->get<text_ptr>();
  } else {
    const std::int64_t n = width ? width->as_integer().value_or(4) : 4;
    if (n > 10'000) fail("indent: a width of {}", n);
    space = make_text(m.memory, std::string(static_cast<std::size_t>(std::max<std::int64_t>(n, 0)), ' '));
  }
  // One newline more, so that one at the end of the text is kept.
  arguments none;
  const value whole = add(m, text_of(m, v), m.make_text("\n"));
  const value lines = call_method(m, whole, "splitlines", none);
  text_builder out(m.memory);
  bool opens = true;
  for (const value& line : lines.as_list()->items) {
    const bool indents = opens ? first : blank || line.truth();
    if (!opens) out.add("\n");
    if (indents) out.add(*space);
    out.add(*line.as_text());
    opens = false;
  }
  return out.finish();
}

// A number that is spelled as Python's int() and float() take it: white space around it, `_` between digits.
std::optional<std::string> spelled_number(machine& m, const text& t) {
  std::string_view s = t.bytes;
  m.memory.read(s.size());
  s.remove_prefix(leading_space(s));
  s.remove_suffix(trailing_space(s));
  if (s.empty() || s.size() > 400) return std::nullopt;
  std::string out(s);
  std::erase(out, '_');
  if (out.starts_with('+')) out.erase(0, 1);
  return out;
}

template <class T, class... A>
std::optional<T> number_in(const std::string& s, A... how) {
  T n{};
  const auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), n, how...);
  return ec == std::errc() && end == s.data() + s.size() ? std::optional(n) : std::nullopt;
}

std::optional<std::int64_t> whole(double d) {
  if (!(std::abs(d) < 9.2e18)) return std::nullopt;
  return static_cast<std::int64_t>(d);
}

value to_integer(machine& m, const value& v, arguments& a) {
  parameters p(m, "int", a);
  const value* other = p.find("default");
  const std::int64_t base = p.integer("base").value_or(10);
  p.end();
  const value otherwise = other ? *other : value(std::int64_t{0});
  if (v.as_integer()) return *v.as_integer();
  if (v.as_number()) {
    const auto n = whole(*v.as_number());
    return n ? value(*n) : otherwise;
  }
  auto s = v.as_text() ? spelled_number(m, *v.as_text()) : std::nullopt;
  if (!s || base < 2 || base > 36) return otherwise;
  if (base == 16 && (s->starts_with("0x") || s->starts_with("0X"))) s->erase(0, 2);
  if (const auto n = number_in<std::int64_t>(*s, static_cast<int>(base))) return *n;
  if (base != 10) return otherwise;
  const auto d = number_in<double>(*s);
  const auto n = d ? whole(*d) : std::nullopt;
  return n ? value(*n) : otherwise;
}

value to_float(machine& m, const value& v, arguments& a) {
  parameters p(m, "float", a);
  const value* other = p.find("default");
  p.end();
  if (v.as_number()) return *v.as_number();
  const auto s = v.as_text() ? spelled_number(m, *v.as_text()) : std::nullopt;
  if (const auto d = s ? number_in<double>(*s) : std::nullopt) return *d;
  return other ? *other : value(0.0);
}

value rounded(machine& m, const value& v, arguments& a) {
  parameters p(m, "round", a);
  const std::int64_t digits = std::clamp<std::int64_t>(p.integer("precision").value_or(0), -300, 300);
  const text_ptr method = p.text_or_null("method");
  p.end();
  if (!v.as_number()) fail("round: a {} is no number", v.type_name());
  const std::string how = method ? method->bytes : "common";
  const double scale = std::pow(10.0, static_cast<double>(digits)), d = *v.as_number();
  m.memory.allocate();  // up to 600 digits
  if (how == "ceil") return std::ceil(d * scale) / scale;
  if (how == "floor") return std::floor(d * scale) / scale;
  if (how == "common" && v.as_integer() && digits >= 0) return *v.as_integer();
  if (how != "common") fail("round: the method is '{}', not common, ceil or floor", how.substr(0, 64));
  if (digits < 0) {
    const double near = std::nearbyint(d * scale) / scale;
    return v.as_integer() ? value(whole(near).value_or(*v.as_integer())) : value(near);
  }
  // The decimal digits of the number decide, as in Python.
  char out[700];
  const auto end =
      std::to_chars(out, out + sizeof out, d, std::chars_format::fixed, static_cast<int>(digits)).ptr;
  return number_in<double>(std::string(out, end)).value_or(d);
}

value titled(machine& m, const value& v, arguments&) {
  // Jinja's words begin behind white space and brackets, Python's behind every character that is no letter.
  const text_ptr t = text_of(m, v);
  text_builder out(m.memory);
  std::size_t begin = 0;
  const auto add_word = [&](std::size_t end) {
    if (begin < end) out.add(*in_case(m.memory, *part_of(m.memory, t, begin, end), letter_case::capital));
    begin = end;
  };
  for (std::size_t i = 0; i < t->bytes.size(); i += character_size(t->bytes[i])) {
    const std::string_view one = std::string_view(t->bytes).substr(i, character_size(t->bytes[i]));
    const bool parts =
        leading_space(one) > 0 || std::string_view("-({[<").find(one) != std::string_view::npos;
    if (!parts) continue;
    add_word(i);
    out.add_part(*t, i, i + one.size());
    begin = i + one.size();
  }
  add_word(t->bytes.size());
  return out.finish();
}

value as_text(machine& m, const value& v, arguments&) { return text_of(m, v); }

value to_json(machine& m, const value& v, arguments& a) {
  parameters p(m, "tojson", a);
  json_style style;
  style.ascii = p.flag("ensure_ascii", false);
  const value* indent = p.find("indent");
  const value* separators = p.find("separators");
  style.sorted = p.flag("sort_keys", false);
  p.end();
  if (indent && indent->as_text()) style.indent = indent->as_text()->bytes;
  if (indent && indent->as_integer())
    style.indent =
        std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(*indent->as_integer(), 0, 100)), ' ');
  if (separators && !separators->is_none()) {
    const list* l = separators->as_list();
    if (!l || l->items.size() != 2 || !l->items[0].as_text() || !l->items[1].as_text())
      fail("tojson: 'separators' is no pair of texts");
    style.between = l->items[0].as_text()->bytes;
    style.behind_key = l->items[1].as_text()->bytes;
  }
  for (const auto* part : {&style.indent, &style.between, &style.behind_key})
    if (*part) m.memory.copy((*part)->size());
  text_builder out(m.memory);
  print_json(out, m.memory, v, style);
  return out.finish();
}

value shortened_text(machine& m, const value& v, arguments& a) {
  parameters p(m, "truncate", a);
  const std::int64_t length = p.integer("length").value_or(255);
  const bool in_words = p.flag("killwords", false);
  const text_ptr given = p.text_or_null("end");
  const std::int64_t leeway = p.integer("leeway").value_or(5);
  p.end();
  const text_ptr end = given ? given : make_text(m.memory, "...");
  const text_ptr t = text_of(m, v);
  m.memory.read(t->bytes.size());
  const auto size = static_cast<std::int64_t>(count_characters(t->bytes));
  const auto tail = static_cast<std::int64_t>(length_of(m, end));
  if (length < tail || leeway < 0) fail("truncate: a length of {}", length);
  if (size <= length + leeway) return t;
  std::size_t cut = byte_of(t->bytes, static_cast<std::size_t>(length - tail));
  if (!in_words)
    if (const auto space = t->bytes.substr(0, cut).rfind(' '); space != std::string::npos) cut = space;
  text_builder out(m.memory);
  out.add_part(*t, 0, cut);
  out.add(*end);
  return out.finish();
}

value url_quoted(machine& m, const value& v, arguments&) {
  if (v.as_dict() || v.as_list()) fail("urlencode: a {} is not supported", v.type_name());
  const text_ptr t = text_of(m, v);
  text_builder out(m.memory);
  for (const char c : t->bytes) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    const std::string coded = fmt::format("%{:02X}", static_cast<unsigned char>(c));
    out.add(plain ? std::string_view(&c, 1) : std::string_view(coded), !t->content.empty());
  }
  return out.finish();
}

value words(machine& m, const value& v, arguments&) {
  const text_ptr t = text_of(m, v);
  m.memory.read(2 * t->bytes.size());
  std::string_view rest = t->bytes;
  std::int64_t n = 0;
  for (bool inside = false; !rest.empty();) {
    const bool word = is_word(take_character(rest));
    n += word && !inside;
    inside = word;
  }
  return n;
}

value replaced_text(machine& m, const value& v, arguments& a) {
  parameters p(m, "replace", a);
  const text_ptr from = text_of(m, p.need("old")), to = text_of(m, p.need("new"));
  const std::int64_t most = p.integer("count").value_or(-1);
  p.end();
  return replaced(m, *text_of(m, v), *from, *to, most);
}

value length(machine& m, const value& v, arguments&) { return value::number(length_of(m, v)); }

constexpr filter_row text_filter_rows[] = {
    {"abs", absolute},
    {"attr", attribute},
    {"capitalize", as_method<capitalize_name>},
    {"center", as_method<center_name>},
    {"count", length},
    {"d", otherwise},
    {"default", otherwise},
    {"e", escaped_text},
    {"escape", escaped_text},
    {"float", to_float},
    {"format", formatted},
    {"indent", indented},
    {"int", to_integer},
    {"length", length},
    {"lower", as_method<lower_name>},
    {"replace", replaced_text},
    {"round", rounded},
    {"safe", safe},
    {"string", as_text},
    {"title", titled},
    {"tojson", to_json},
    {"trim", as_method<strip_name>},
    {"truncate", shortened_text},
    {"upper", as_method<upper_name>},
    {"urlencode", url_quoted},
    {"wordcount", words},
};

const filter_row* find_filter(std::string_view name) {
  for (const auto table : {std::span<const filter_row>(text_filter_rows), sequence_filters()}) {
    const auto at = std::ranges::find(table, name, &filter_row::name);
    if (at != table.end()) return &*at;
  }
  return nullptr;
}

}  // namespace

bool has_filter(std::string_view name) { return find_filter(name) != nullptr; }

value run_filter(machine& m, std::string_view name, const value& subject, arguments& a) {
  const filter_row* f = find_filter(name);
  if (!f) fail("there is no filter '{}' here", name.substr(0, 64));
  return f->run(m, subject, a);
}

}  // namespace weir::core::jinja
