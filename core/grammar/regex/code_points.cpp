#include "core/grammar/regex/code_points.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "core/grammar/regex/unicode_names.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::grammar {
namespace {

constexpr char32_t last_code_point = 0x10FFFF;
constexpr char32_t first_surrogate = 0xD800, last_surrogate = 0xDFFF;

using range = code_points::range;

byte_set byte_range(unsigned first, unsigned last) {
  byte_set set;
  for (auto b = first; b <= last; ++b) set.set(b);
  return set;
}

// The part of the ranges inside [first, last], counted from `first`.
std::vector<range> clipped(std::span<const range> all, char32_t first, char32_t last) {
  std::vector<range> out;
  for (const auto& r : all) {
    if (r.first > last) break;
    if (r.last >= first) out.push_back({std::max(r.first, first) - first, std::min(r.last, last) - first});
  }
  return out;
}

// `bytes` continuation bytes that spell a value of the ranges, six bits each.
regex_id continuation(regex_pool& pool, std::span<const range> values, int bytes);

// For each n below `count`: the byte `base | n`, and behind it the `behind` continuation bytes of its values.
regex_id led(regex_pool& pool, std::span<const range> values, unsigned base, unsigned count, int behind) {
  std::map<regex_id, byte_set> by_rest;
  byte_set before_all;  // bytes behind which every continuation is of the set
  const char32_t size = char32_t{1} << (6 * behind);
  for (unsigned n = 0; n < count; ++n) {
    const char32_t first = n * size, last = first + size - 1;
    while (!values.empty() && values[0].last < first) values = values.subspan(1);
    if (values.empty()) break;
    if (values[0].first <= first && values[0].last >= last)
      before_all.set(base | n);
    else if (const auto part = clipped(values, first, last); !part.empty())
      by_rest[continuation(pool, part, behind)].set(base | n);
  }
  if (before_all.any()) {
    const range all{0, size - 1};
    by_rest[continuation(pool, {&all, 1}, behind)] |= before_all;
  }
  std::vector<regex_id> out;
  for (const auto& [rest, set] : by_rest) out.push_back(pool.concat(pool.bytes(set), rest));
  return pool.either(out);
}

regex_id continuation(regex_pool& pool, std::span<const range> values, int bytes) {
  if (bytes == 0) return regex_pool::empty;
  const char32_t last = (char32_t{1} << (6 * bytes)) - 1;
  if (values.size() == 1 && values[0] == range{0, last}) {
    regex_id r = regex_pool::empty;
    const auto one = pool.bytes(byte_range(0x80, 0xBF));
    for (int i = 0; i < bytes; ++i) r = pool.concat(one, r);
    return r;
  }
  return led(pool, values, 0x80, 64, bytes - 1);
}

regex_id utf8_of(regex_pool& pool, const code_points& set) {
  const auto within = [&](char32_t first, char32_t last) {
    auto out = clipped(set.ranges(), first, last);
    for (auto& r : out) r.first += first, r.last += first;
    return out;
  };
  byte_set ascii;
  for (const auto& r : within(0, 0x7F)) ascii |= byte_range(r.first, r.last);
  const std::vector<regex_id> lengths{
      pool.bytes(ascii),
      led(pool, within(0x80, 0x7FF), 0xC0, 32, 1),
      led(pool, within(0x800, 0xFFFF), 0xE0, 16, 2),
      led(pool, within(0x10000, last_code_point), 0xF0, 5, 3),
  };
  return pool.either(lengths);
}

// The escape of a character in a JSON string; empty: the character needs none.
std::string json_escape(char32_t c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return c < 0x20 ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string();
  }
}

// Code points that differ in case alone share a folded form. U+0130 and U+0131 have none in Unicode's simple
// folding; the library maps them to `i`.
struct case_table {
  std::unordered_map<char32_t, char32_t> folded;              // where it is not the code point itself
  std::unordered_map<char32_t, std::vector<char32_t>> alike;  // folded form: all that have it
  case_table() {
    for (char32_t c = 0; c <= 0x1FFFF; ++c) {  // no character above has a case
      if (c == 0x130 || c == 0x131) continue;
      const auto upper = utf8proc_toupper(static_cast<utf8proc_int32_t>(c));
      const auto f = static_cast<char32_t>(utf8proc_tolower(upper));
      if (f != c) folded[c] = f, alike[f].push_back(c);
    }
    for (auto& [f, all] : alike) all.push_back(f);
  }
};

}  // namespace

code_points code_points::all() { return {0, last_code_point}; }

code_points code_points::of(std::u32string_view characters) {
  code_points out;
  for (const auto c : characters) out.add(c, c);
  return out;
}

void code_points::add(char32_t first, char32_t last) {
  last = std::min(last, last_code_point);
  if (first > last) return;
  if (first <= last_surrogate && last >= first_surrogate) {
    if (first < first_surrogate) add(first, first_surrogate - 1);
    if (last > last_surrogate) add(last_surrogate + 1, last);
    return;
  }
  // Ranges that share code points with the new one, or touch it, become one with it. The gap of the
  // surrogates stays.
  auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), first,
                                [](const range& r, char32_t c) { return r.last + 1 < c; });
  auto end = begin;
  while (end != ranges_.end() && end->first <= last + 1) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
    ++end;
  }
  begin = ranges_.erase(begin, end);
  ranges_.insert(begin, {first, last});
}

void code_points::add(const code_points& o) {
  for (const auto& r : o.ranges_) add(r.first, r.last);
}

code_points code_points::negated() const {
  code_points out;
  char32_t next = 0;
  for (const auto& r : ranges_) {
    if (r.first > next) out.add(next, r.first - 1);
    next = r.last + 1;
  }
  if (next <= last_code_point) out.add(next, last_code_point);
  return out;
}

code_points code_points::intersected(const code_points& o) const {
  code_points out;
  for (std::size_t i = 0, j = 0; i < ranges_.size() && j < o.ranges_.size();) {
    const auto first = std::max(ranges_[i].first, o.ranges_[j].first);
    const auto last = std::min(ranges_[i].last, o.ranges_[j].last);
    if (first <= last) out.ranges_.push_back({first, last});
    if (ranges_[i].last < o.ranges_[j].last)
      ++i;
    else
      ++j;
  }
  return out;
}

code_points code_points::any_case() const {
  static const case_table table;
  code_points out = *this;
  const auto add_alike = [&](char32_t f) {
    if (const auto at = table.alike.find(f); at != table.alike.end())
      for (const auto c : at->second) out.add(c, c);
  };
  char32_t size = 0;
  for (const auto& r : ranges_) size += r.last - r.first + 1;
  if (size <= 256) {
    for (const auto& r : ranges_)
      for (auto c = r.first; c <= r.last; ++c) {
        const auto at = table.folded.find(c);
        add_alike(at == table.folded.end() ? c : at->second);
      }
    return out;
  }
  for (const auto& [c, f] : table.folded)
    if (contains(c)) add_alike(f);
  for (const auto& [f, _] : table.alike)
    if (contains(f)) add_alike(f);
  return out;
}

bool code_points::contains(char32_t c) const {
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), c,
                                   [](const range& r, char32_t x) { return r.last < x; });
  return at != ranges_.end() && at->first <= c;
}

const code_points& ecma_digits() {
  static const code_points set('0', '9');
  return set;
}

const code_points& ecma_word() {
  static const code_points set = [] {
    code_points out('0', '9');
    out.add('A', 'Z'), out.add('a', 'z'), out.add('_', '_');
    return out;
  }();
  return set;
}

const code_points& ecma_space() {
  static const code_points set = [] {
    auto out = code_points::of(U"\t\n\v\f\r \u00A0\u1680\u2028\u2029\u202F\u205F\u3000\uFEFF");
    out.add(0x2000, 0x200A);
    return out;
  }();
  return set;
}

const code_points& ecma_dot() {
  static const code_points set = code_points::of(U"\n\r\u2028\u2029").negated();
  return set;
}

std::optional<code_points> unicode_property(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, code_points, std::less<>> known;  // as many as Unicode has names
  {
    const std::lock_guard lock(mutex);
    if (const auto at = known.find(name); at != known.end()) return at->second;
  }
  auto found = find_unicode_property(name);
  if (!found) return std::nullopt;
  const std::lock_guard lock(mutex);
  return known.try_emplace(std::string(name), std::move(*found)).first->second;
}

namespace {

regex_id make_one_of(regex_pool& pool, const code_points& set, spelling how) {
  if (how == spelling::plain) return utf8_of(pool, set);
  auto escaped = code_points(0, 0x1F);
  escaped.add('"', '"'), escaped.add('\\', '\\');
  const auto to_escape = set.intersected(escaped);
  std::vector<std::string> spellings;
  for (const auto& r : to_escape.ranges())
    for (auto c = r.first; c <= r.last; ++c) spellings.push_back(json_escape(c));
  return pool.either(utf8_of(pool, set.without(escaped)), pool.literals(std::move(spellings)));
}

}  // namespace

regex_id one_of(regex_pool& pool, const code_points& set, spelling how) {
  const auto ranges = set.ranges();
  std::string name(how == spelling::plain ? "p" : "j");
  name.append(reinterpret_cast<const char*>(ranges.data()), ranges.size_bytes());
  auto& known = pool.remembered(name);
  if (known == regex_pool::nothing) known = make_one_of(pool, set, how);
  return known;
}

std::string spelled(std::string_view utf8, spelling how) {
  if (how == spelling::plain) return std::string(utf8);
  std::string out;
  for (const char c : utf8) {
    const auto b = static_cast<unsigned char>(c);
    const auto escape = b < 0x80 ? json_escape(b) : std::string();
    if (escape.empty())
      out += c;
    else
      out += escape;
  }
  return out;
}

}  // namespace weir::core::grammar
