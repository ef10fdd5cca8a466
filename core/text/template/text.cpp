#include "core/text/template/text.h"

#include <utf8proc.h>

#include <algorithm>

#include "core/text/tokenizer/unicode.h"

namespace weir::core::jinja {

bool text::ascii() const noexcept {
  return std::ranges::all_of(bytes, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void text_builder::reserve_more(std::size_t n) {
  budget_.copy(n);
  if (n > most_ - std::min(most_, bytes_.size())) stop("the prompt would have more than {} bytes", most_);
  budget_.take(n);
  charged_ += n;
}

void text_builder::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!content_.empty() && content_.back().end == begin)
    content_.back().end = end;
  else
    content_.push_back({begin, end});
}

void text_builder::add(std::string_view bytes, bool from_client) {
  reserve_more(bytes.size());
  const std::size_t begin = bytes_.size();
  bytes_ += bytes;
  if (from_client) mark(begin, bytes_.size());
}

void text_builder::add_part(const text& t, std::size_t begin, std::size_t end) {
  reserve_more(end - begin);
  const std::size_t at = bytes_.size();
  bytes_.append(t.bytes, begin, end - begin);
  for (auto s = std::ranges::upper_bound(t.content, begin, {}, &span::end); s != t.content.end(); ++s) {
    if (s->begin >= end) break;
    mark(at + std::max(s->begin, begin) - begin, at + std::min(s->end, end) - begin);
  }
}

text_ptr text_builder::finish(bool markup) {
  budget_.allocate();
  budget_.give_back(std::exchange(charged_, 0));
  return std::make_shared<const text>(budget_, std::move(bytes_), std::move(content_), markup);
}

text_ptr make_text(budget& b, std::string_view bytes, bool from_client) {
  b.allocate();
  b.copy(bytes.size());
  std::vector<span> content;
  if (from_client && !bytes.empty()) content.push_back({0, bytes.size()});
  return std::make_shared<const text>(b, std::string(bytes), std::move(content), false);
}

text_ptr part_of(budget& b, const text_ptr& t, std::size_t begin, std::size_t end) {
  if (begin == 0 && end == t->bytes.size()) return t;
  text_builder out(b);
  out.add_part(*t, begin, end);
  return out.finish(t->markup);
}

text_ptr escaped(budget& b, const text& t) {
  text_builder out(b);
  std::size_t at = 0;
  const auto stands_for = [](char c) -> std::string_view {
    switch (c) {
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '"':
        return "&#34;";
      case '\'':
        return "&#39;";
      default:
        return {};
    }
  };
  for (std::size_t i = 0; i < t.bytes.size() && !t.markup; ++i) {
    const std::string_view escape = stands_for(t.bytes[i]);
    if (escape.empty()) continue;
    out.add_part(t, at, i);
    out.add(escape, !t.content.empty());
    at = i + 1;
  }
  out.add_part(t, at, t.bytes.size());
  return out.finish(true);
}

std::size_t count_characters(std::string_view utf8) noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t byte_of(std::string_view utf8, std::size_t n) noexcept {
  std::size_t at = 0;
  for (; n > 0 && at < utf8.size(); --n) at += character_size(utf8[at]);
  return std::min(at, utf8.size());
}

namespace {

// Charges a search for the bytes that it looks at, some at a time.
class search_charge {
 public:
  explicit search_charge(budget& b) : budget_(b) { budget_.step(); }
  void looked_at(std::size_t bytes) {
    constexpr std::size_t some = 4'096;
    if ((open_ += bytes) < some) return;
    budget_.copy(open_);
    open_ = 0;
  }
  void end() { budget_.copy(open_); }

 private:
  budget& budget_;
  std::size_t open_ = 0;
};

// How many bytes of `part` are at a place of a text. REQUIRES: there is room for all of them
std::size_t alike(const char* at, std::string_view part) {
  return static_cast<std::size_t>(std::mismatch(part.begin(), part.end(), at).first - part.begin());
}

constexpr std::size_t try_bytes = 4;  // a place that is tried costs as much as these bytes of a copy

}  // namespace

std::size_t first_place(budget& b, std::string_view whole, std::string_view part, std::size_t from) {
  if (from > whole.size() || part.size() > whole.size() - from) return std::string_view::npos;
  if (part.empty()) return from;
  search_charge charge(b);
  const std::string_view places = whole.substr(0, whole.size() - part.size() + 1);
  std::size_t found = std::string_view::npos;
  for (std::size_t at = from; found == std::string_view::npos;) {
    const std::size_t next = places.find(part.front(), at);
    if (next == std::string_view::npos) {
      charge.looked_at(places.size() - at);
      break;
    }
    const std::size_t same = alike(whole.data() + next, part);
    charge.looked_at(next - at + same + try_bytes);
    if (same == part.size()) found = next;
    at = next + 1;
  }
  charge.end();
  return found;
}

std::size_t last_place(budget& b, std::string_view whole, std::string_view part, std::size_t from) {
  if (part.size() > whole.size()) return std::string_view::npos;
  search_charge charge(b);
  std::size_t found = std::string_view::npos;
  for (std::size_t at = std::min(from, whole.size() - part.size()) + 1; at-- > 0;) {
    const std::size_t same = alike(whole.data() + at, part);
    charge.looked_at(same > 0 ? same + try_bytes : 1);
    if (same < part.size()) continue;
    found = at;
    break;
  }
  charge.end();
  return found;
}

bool is_space(char32_t c) noexcept { return (c >= 0x1C && c <= 0x1F) || is_whitespace(c); }

std::size_t leading_space(std::string_view utf8) noexcept {
  std::string_view rest = utf8;
  while (!rest.empty()) {
    std::string_view next = rest;
    if (!is_space(take_character(next))) break;
    rest = next;
  }
  return utf8.size() - rest.size();
}

std::size_t trailing_space(std::string_view utf8) noexcept {
  std::size_t end = utf8.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(utf8[begin]) & 0xC0) == 0x80) --begin;
    std::string_view last = utf8.substr(begin, end - begin);
    if (!is_space(take_character(last))) break;
    end = begin;
  }
  return utf8.size() - end;
}

namespace {

char32_t mapped(char32_t c, letter_case to, bool opens_word, bool opens_text) {
  const auto at = static_cast<utf8proc_int32_t>(c);
  bool upper = false;
  switch (to) {
    case letter_case::upper:
      upper = true;
      break;
    case letter_case::lower:
      break;
    case letter_case::title:
      upper = opens_word;
      break;
    case letter_case::capital:
      upper = opens_text;
      break;
    case letter_case::swapped:
      upper = utf8proc_toupper(at) != at;
      break;
  }
  if (upper && (to == letter_case::title || to == letter_case::capital))
    return static_cast<char32_t>(utf8proc_totitle(at));
  return static_cast<char32_t>(upper ? utf8proc_toupper(at) : utf8proc_tolower(at));
}

bool is_letter(char32_t c) {
  const auto k = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT;
}

}  // namespace

text_ptr in_case(budget& b, const text& t, letter_case to) {
  text_builder out(b);
  std::string_view rest = t.bytes;
  bool opens_word = true;
  auto mark = t.content.begin();
  std::string one;
  while (!rest.empty()) {
    const std::size_t at = t.bytes.size() - rest.size();
    const char32_t c = take_character(rest);
    while (mark != t.content.end() && mark->end <= at) ++mark;
    one.clear();
    const char32_t now = mapped(c, to, opens_word, at == 0);
    if (c == U'ß' && (to == letter_case::upper || to == letter_case::swapped))
      one = "SS";  // the one letter of Western languages that becomes two
    else
      append_utf8(one, now);
    out.add(one, mark != t.content.end() && mark->begin <= at);
    opens_word = !is_letter(c);
  }
  return out.finish();
}

}  // namespace weir::core::jinja
