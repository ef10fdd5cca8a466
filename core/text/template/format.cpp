// Python's two ways to format: '%s of %d' % (a, b), and '{} of {}'.format(a, b).
#include <cmath>

#include "core/text/template/machine.h"

namespace weir::core::jinja {
namespace {

constexpr int most_width = 1000;  // characters of a formatted number

struct conversion {
  std::string flags;
  int width = 0, precision = -1;
  char type = 0;
};

// Reads what stands behind a `%`, up to the letter. `at` moves behind it.
conversion read_conversion(std::string_view s, std::size_t& at) {
  conversion c;
  const auto number = [&] {
    int n = 0;
    while (at < s.size() && s[at] >= '0' && s[at] <= '9') {
      n = n * 10 + (s[at++] - '0');
      if (n > most_width) fail("a width in a format is above {}", most_width);
    }
    return n;
  };
  while (at < s.size() && std::string_view("-+ 0#").find(s[at]) != std::string_view::npos) c.flags += s[at++];
  c.width = number();
  if (at < s.size() && s[at] == '.') {
    ++at;
    c.precision = number();
  }
  if (at >= s.size()) fail("a format ends behind '%'");
  c.type = s[at++];
  return c;
}

std::string formatted_number(const conversion& c, const value& v) {
  const auto n = v.as_number();
  if (!n) fail("'%{}' needs a number, not a {}", c.type, v.type_name());
  const bool floating = std::string_view("eEfFgG").find(c.type) != std::string_view::npos;
  std::string spec = fmt::format("%{}", c.flags);
  if (c.width > 0) spec += std::to_string(c.width);
  if (c.precision >= 0) spec += fmt::format(".{}", c.precision);
  char out[2 * most_width + 400];
  if (floating) {
    spec += c.type;
    std::snprintf(out, sizeof out, spec.c_str(), *n);
    return out;
  }
  const auto whole = v.as_integer();
  if (!whole && (c.type != 'd' && c.type != 'i')) fail("'%{}' needs an int", c.type);
  if (!whole && !(std::abs(*n) < 9e18)) fail("'%{}': the number is too large", c.type);
  spec += "ll";
  spec += c.type == 'i' ? 'd' : c.type;
  const long long digits = whole ? *whole : static_cast<std::int64_t>(*n);
  std::snprintf(out, sizeof out, spec.c_str(), digits);
  return out;
}

void add_padded(text_builder& out, const text& t, const conversion& c) {
  const std::size_t end =
      c.precision < 0 ? t.bytes.size() : byte_of(t.bytes, static_cast<std::size_t>(c.precision));
  const std::size_t size = count_characters(std::string_view(t.bytes).substr(0, end));
  const auto width = static_cast<std::size_t>(c.width);
  const std::string space(width > size ? width - size : 0, ' ');
  const bool left = c.flags.find('-') != std::string::npos;
  if (!left) out.add(space);
  out.add_part(t, 0, end);
  if (left) out.add(space);
}

}  // namespace

value percent_format(machine& m, const text& format, const std::vector<value>& with) {
  text_builder out(m.memory);
  const std::string_view s = format.bytes;
  std::size_t used = 0, at = 0;
  while (at < s.size()) {
    const std::size_t sign = std::min(s.find('%', at), s.size());
    out.add_part(format, at, sign);
    if (sign == s.size()) break;
    at = sign + 1;
    if (at < s.size() && s[at] == '(') fail("'%(name)' in a format is not supported");
    const conversion c = read_conversion(s, at);
    if (c.type == '%') {
      out.add("%");
      continue;
    }
    if (used == with.size()) fail("a format needs more values than the {} it has", with.size());
    const value& v = with[used++];
    if (c.type == 's') {
      add_padded(out, *to_text(m.memory, v), c);
    } else if (c.type == 'r') {
      text_builder quoted(m.memory);
      print_quoted(quoted, v);
      add_padded(out, *quoted.finish(), c);
    } else if (std::string_view("dixXoeEfFgG").find(c.type) != std::string_view::npos) {
      out.add(formatted_number(c, v));
    } else {
      fail("'%{}' in a format is not supported", c.type);
    }
  }
  if (used < with.size())
    fail("a format has {} values, and {} of them no place", with.size(), with.size() - used);
  return out.finish();
}

value brace_format(machine& m, const text& format, const arguments& a) {
  text_builder out(m.memory);
  const std::string_view s = format.bytes;
  std::size_t at = 0, next = 0;
  while (at < s.size()) {
    const std::size_t brace = std::min(s.find_first_of("{}", at), s.size());
    out.add_part(format, at, brace);
    if (brace == s.size()) break;
    if (brace + 1 < s.size() && s[brace + 1] == s[brace]) {
      out.add_part(format, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const std::size_t end = s[brace] == '{' ? s.find('}', brace) : std::string_view::npos;
    if (end == std::string_view::npos) fail("format(): a brace stands alone");
    const std::string_view field = s.substr(brace + 1, end - brace - 1);
    at = end + 1;
    const value* v = nullptr;
    std::size_t index = next;
    const bool numbered =
        !field.empty() && field.find_first_not_of("0123456789") == field.npos && field.size() < 9;
    if (numbered) index = static_cast<std::size_t>(std::stoul(std::string(field)));
    if (field.empty()) ++next;
    if (field.empty() || numbered) {
      if (index < a.positional.size()) v = &a.positional[index];
    } else if (field.find_first_of(":!.[") != field.npos) {
      fail("format(): '{{{}}}' is not supported", field);
    } else {
      m.memory.step(a.named.size() / 8);
      for (const auto& [name, named] : a.named)
        if (name == field) v = &named;
    }
    if (!v) fail("format(): nothing was given for '{{{}}}'", field);
    print(out, *v);
  }
  return out.finish();
}

}  // namespace weir::core::jinja
