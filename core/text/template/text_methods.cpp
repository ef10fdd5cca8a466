// The methods of strings, as Python's str has them.
#include <utf8proc.h>

#include "core/text/template/methods.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::jinja {
namespace {

const text_ptr& str(const value& self) { return *self.get<text_ptr>(); }

// Number of bytes at the beginning (or the end) whose characters are in `set`; null: that are white space.
std::size_t leading(budget& b, const std::string_view bytes, const text* set) {
  if (!set) return leading_space(bytes);
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t size = character_size(bytes[at]);
    if (first_place(b, set->bytes, bytes.substr(at, size)) == std::string::npos) break;
    at += size;
  }
  return at;
}
std::size_t trailing(budget& b, const std::string_view bytes, const text* set) {
  if (!set) return trailing_space(bytes);
  std::size_t end = bytes.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(bytes[begin]) & 0xC0) == 0x80) --begin;
    if (first_place(b, set->bytes, bytes.substr(begin, end - begin)) == std::string::npos) break;
    end = begin;
  }
  return bytes.size() - end;
}

template <bool left, bool right>
value strip(machine& m, const value& self, parameters& p) {
  const text_ptr& t = str(self);
  const text_ptr set = p.text_or_null("chars");
  const std::size_t begin = left ? leading(m.memory, t->bytes, set.get()) : 0;
  const std::size_t cut = right ? trailing(m.memory, std::string_view(t->bytes).substr(begin), set.get()) : 0;
  m.memory.read(begin + cut);
  return part_of(m.memory, t, begin, t->bytes.size() - cut);
}

value split_at_space(machine& m, const text_ptr& t, std::int64_t most) {
  m.memory.read(t->bytes.size());
  std::vector<value> out;
  std::size_t at = leading_space(t->bytes);
  while (at < t->bytes.size()) {
    std::size_t end = at;
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
      end = t->bytes.size();
    } else {
      while (end < t->bytes.size()) {
        const std::string_view one = std::string_view(t->bytes).substr(end, character_size(t->bytes[end]));
        if (leading_space(one) > 0) break;
        end += one.size();
      }
    }
    out.push_back(part_of(m.memory, t, at, end));
    at = end + leading_space(std::string_view(t->bytes).substr(end));
  }
  return make_list(m.memory, std::move(out));
}

value split(machine& m, const value& self, parameters& p) {
  const text_ptr& t = str(self);
  const text_ptr by = p.text_or_null("sep");
  const std::int64_t most = p.integer("maxsplit").value_or(-1);
  if (!by) return split_at_space(m, t, most);
  if (by->bytes.empty()) fail("split(): the separator is empty");
  std::vector<value> out;
  std::size_t at = 0;
  for (;;) {
    const bool enough = most >= 0 && static_cast<std::int64_t>(out.size()) >= most;
    const std::size_t end = enough ? std::string::npos : first_place(m.memory, t->bytes, by->bytes, at);
    out.push_back(part_of(m.memory, t, at, std::min(end, t->bytes.size())));
    if (end == std::string::npos) return make_list(m.memory, std::move(out));
    at = end + by->bytes.size();
  }
}

value rsplit(machine& m, const value& self, parameters& p) {
  const text_ptr& t = str(self);
  const text_ptr by = p.text_or_null("sep");
  const std::int64_t most = p.integer("maxsplit").value_or(-1);
  if (!by || by->bytes.empty()) fail("rsplit() needs a separator here");
  std::vector<value> out;
  std::size_t end = t->bytes.size();
  for (;;) {
    const bool enough = most >= 0 && static_cast<std::int64_t>(out.size()) >= most;
    const std::size_t at = enough || end < by->bytes.size()
                               ? std::string::npos
                               : last_place(m.memory, t->bytes, by->bytes, end - by->bytes.size());
    const std::size_t begin = at == std::string::npos ? 0 : at + by->bytes.size();
    out.push_back(part_of(m.memory, t, begin, end));
    if (at == std::string::npos) break;
    end = at;
  }
  std::ranges::reverse(out);
  return make_list(m.memory, std::move(out));
}

value splitlines(machine& m, const value& self, parameters& p) {
  const text_ptr& t = str(self);
  const bool keep = p.flag("keepends", false);
  m.memory.read(t->bytes.size());
  std::vector<value> out;
  std::size_t begin = 0, at = 0;
  while (at < t->bytes.size()) {
    std::string_view rest = std::string_view(t->bytes).substr(at);
    const std::size_t before = rest.size();
    const char32_t c = take_character(rest);
    std::size_t size = before - rest.size();
    const bool ends =
        (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (c == U'\r' && rest.starts_with('\n')) ++size;
    if (ends) {
      out.push_back(part_of(m.memory, t, begin, keep ? at + size : at));
      begin = at + size;
    }
    at += size;
  }
  if (begin < t->bytes.size()) out.push_back(part_of(m.memory, t, begin, t->bytes.size()));
  return make_list(m.memory, std::move(out));
}

template <bool from_end>
value partition(machine& m, const value& self, parameters& p) {
  const text_ptr& t = str(self);
  const text_ptr by = p.need_text("sep");
  if (by->bytes.empty()) fail("partition(): the separator is empty");
  const std::size_t at =
      from_end ? last_place(m.memory, t->bytes, by->bytes) : first_place(m.memory, t->bytes, by->bytes);
  const value nothing = m.make_text("");
  if (at == std::string::npos)
    return make_list(
        m.memory,
        from_end ? std::vector<value>{nothing, nothing, t} : std::vector<value>{t, nothing, nothing}, true);
  return make_list(m.memory,
                   {part_of(m.memory, t, 0, at), part_of(m.memory, t, at, at + by->bytes.size()),
                    part_of(m.memory, t, at + by->bytes.size(), t->bytes.size())},
                   true);
}

// The part of a text that `start` and `end` name, in bytes.
span searched(machine& m, const text& t, parameters& p) {
  const auto from = p.integer("start"), to = p.integer("end");
  if (!from && !to) return {0, t.bytes.size()};
  m.memory.read(t.bytes.size());
  const auto size = static_cast<std::int64_t>(count_characters(t.bytes));
  const auto place = [&](std::int64_t n) {
    return byte_of(t.bytes,
                   static_cast<std::size_t>(std::clamp<std::int64_t>(n < 0 ? n + size : n, 0, size)));
  };
  return {place(from.value_or(0)), place(to.value_or(size))};
}

template <bool at_end>
value begins_or_ends(machine& m, const value& self, parameters& p) {
  const value& with = p.need("prefix");
  const text& t = *str(self);
  const span s = searched(m, t, p);
  if (s.begin > s.end) return false;
  const std::string_view part = std::string_view(t.bytes).substr(s.begin, s.end - s.begin);
  const auto fits = [&](const value& v) {
    const text* one = v.as_text();
    if (!one) fail("{}() takes a str or a tuple of them", at_end ? "endswith" : "startswith");
    m.memory.copy(one->bytes.size());
    return at_end ? part.ends_with(one->bytes) : part.starts_with(one->bytes);
  };
  if (const list* l = with.as_list()) return std::ranges::any_of(l->items, fits);
  return fits(with);
}

template <bool from_end, bool must_be>
value find(machine& m, const value& self, parameters& p) {
  const text_ptr what = p.need_text("sub");
  const text& t = *str(self);
  const span s = searched(m, t, p);
  const std::string_view part =
      s.begin > s.end ? std::string_view() : std::string_view(t.bytes).substr(s.begin, s.end - s.begin);
  const std::size_t at =
      from_end ? last_place(m.memory, part, what->bytes) : first_place(m.memory, part, what->bytes);
  if (at != std::string_view::npos) {
    m.memory.copy(s.begin + at);
    return value::number(count_characters(std::string_view(t.bytes).substr(0, s.begin + at)));
  }
  if (must_be) fail("index(): the text is not there");
  return std::int64_t{-1};
}

value count(machine& m, const value& self, parameters& p) {
  const text_ptr what = p.need_text("sub");
  const text& t = *str(self);
  if (what->bytes.empty()) return value::number(length_of(m, self) + 1);
  std::size_t n = 0;
  for (std::size_t at = first_place(m.memory, t.bytes, what->bytes); at != std::string::npos;
       at = first_place(m.memory, t.bytes, what->bytes, at + what->bytes.size()))
    ++n;
  return value::number(n);
}

value replace(machine& m, const value& self, parameters& p) {
  const text_ptr& t = str(self);
  const text_ptr from = p.need_text("old"), to = p.need_text("new");
  const std::int64_t most = p.integer("count").value_or(-1);
  return replaced(m, *t, *from, *to, most);
}

value join(machine& m, const value& self, parameters& p) {
  text_builder out(m.memory);
  bool first = true;
  for (const value& v : items_of(m, p.need("iterable"))) {
    if (!v.as_text()) fail("join(): an item is a {}, not a str", v.type_name());
    if (!std::exchange(first, false)) out.add(*str(self));
    out.add(*v.as_text());
  }
  return out.finish();
}

template <letter_case to>
value recased(machine& m, const value& self, parameters&) {
  return in_case(m.memory, *str(self), to);
}

bool is_kind(char32_t c, std::initializer_list<utf8proc_category_t> kinds) {
  return std::ranges::find(kinds, utf8proc_category(static_cast<utf8proc_int32_t>(c))) != kinds.end();
}
bool is_alpha(char32_t c) {
  return is_kind(c, {UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LT, UTF8PROC_CATEGORY_LM,
                     UTF8PROC_CATEGORY_LO});
}
bool is_decimal(char32_t c) { return is_kind(c, {UTF8PROC_CATEGORY_ND}); }
bool is_upper(char32_t c) { return is_kind(c, {UTF8PROC_CATEGORY_LU}); }
bool is_lower(char32_t c) { return is_kind(c, {UTF8PROC_CATEGORY_LL}); }
bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }

// Whether there are characters, and each has the property.
template <bool (*has)(char32_t)>
value every(machine& m, const value& self, parameters&) {
  std::string_view rest = str(self)->bytes;
  m.memory.read(2 * rest.size());
  if (rest.empty()) return false;
  while (!rest.empty())
    if (!has(take_character(rest))) return false;
  return true;
}

// Whether there are letters of one case and none of the other.
template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
value all_cased(machine& m, const value& self, parameters&) {
  std::string_view rest = str(self)->bytes;
  m.memory.read(2 * rest.size());
  bool some = false;
  while (!rest.empty()) {
    const char32_t c = take_character(rest);
    if (other(c)) return false;
    some |= wanted(c);
  }
  return some;
}

// `side`: -1 pads at the left, 1 at the right, 0 at both.
template <int side>
value padded(machine& m, const value& self, parameters& p) {
  const std::int64_t width = p.integer("width").value_or(0);
  const text_ptr with = p.text_or_null("fillchar");
  const text& t = *str(self);
  const auto size = static_cast<std::int64_t>(length_of(m, self));
  const std::int64_t more = std::max<std::int64_t>(0, width - size);
  // Python's rule for an odd rest.
  const std::int64_t left = side < 0 ? more : side > 0 ? 0 : more / 2 + (more & width & 1);
  text_builder out(m.memory);
  const auto fill = [&](std::int64_t n) {
    for (; n > 0; --n) out.add(with ? std::string_view(with->bytes) : " ");
  };
  fill(left);
  out.add(t);
  fill(more - left);
  return out.finish();
}

value zfill(machine& m, const value& self, parameters& p) {
  const text_ptr& t = str(self);
  const std::int64_t width = p.integer("width").value_or(0);
  const bool sign = t->bytes.starts_with('-') || t->bytes.starts_with('+');
  text_builder out(m.memory);
  if (sign) out.add_part(*t, 0, 1);
  for (auto n = static_cast<std::int64_t>(length_of(m, self)); n < width; ++n) out.add("0");
  out.add_part(*t, sign ? 1 : 0, t->bytes.size());
  return out.finish();
}

template <bool at_end>
value without_affix(machine& m, const value& self, parameters& p) {
  const text_ptr& t = str(self);
  const text_ptr affix = p.need_text("affix");
  const std::size_t n = affix->bytes.size();
  m.memory.copy(n);
  if (at_end ? !t->bytes.ends_with(affix->bytes) : !t->bytes.starts_with(affix->bytes)) return t;
  return at_end ? part_of(m.memory, t, 0, t->bytes.size() - n) : part_of(m.memory, t, n, t->bytes.size());
}

constexpr method_row text_rows[] = {
    {"strip", strip<true, true>},
    {"lstrip", strip<true, false>},
    {"rstrip", strip<false, true>},
    {"split", split},
    {"rsplit", rsplit},
    {"splitlines", splitlines},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"startswith", begins_or_ends<false>},
    {"endswith", begins_or_ends<true>},
    {"find", find<false, false>},
    {"rfind", find<true, false>},
    {"index", find<false, true>},
    {"rindex", find<true, true>},
    {"count", count},
    {"replace", replace},
    {"join", join},
    {"upper", recased<letter_case::upper>},
    {"lower", recased<letter_case::lower>},
    {"casefold", recased<letter_case::lower>},
    {"title", recased<letter_case::title>},
    {"capitalize", recased<letter_case::capital>},
    {"swapcase", recased<letter_case::swapped>},
    {"isalpha", every<is_alpha>},
    {"isdigit", every<is_decimal>},
    {"isdecimal", every<is_decimal>},
    {"isnumeric", every<is_numeric>},
    {"isalnum", every<is_alnum>},
    {"isspace", every<is_space>},
    {"isupper", all_cased<is_upper, is_lower>},
    {"islower", all_cased<is_lower, is_upper>},
    {"center", padded<0>},
    {"ljust", padded<1>},
    {"rjust", padded<-1>},
    {"zfill", zfill},
    {"removeprefix", without_affix<false>},
    {"removesuffix", without_affix<true>},
};

}  // namespace

std::span<const method_row> text_methods() { return text_rows; }

value replaced(machine& m, const text& t, const text& from, const text& to, std::int64_t most) {
  text_builder out(m.memory);
  std::size_t at = 0;
  for (std::int64_t n = 0; most < 0 || n < most; ++n) {
    std::size_t found = from.bytes.empty() ? at : first_place(m.memory, t.bytes, from.bytes, at);
    if (from.bytes.empty() && n > 0)  // an empty text is between all characters
      found = at < t.bytes.size() ? at + character_size(t.bytes[at]) : std::string::npos;
    if (found == std::string::npos) break;
    out.add_part(t, at, found);
    out.add(to);
    at = found + from.bytes.size();
  }
  out.add_part(t, at, t.bytes.size());
  return out.finish();
}

}  // namespace weir::core::jinja
