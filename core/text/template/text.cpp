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
  if (n > most_ - std::min(most_, bytes_.size())) fail("the prompt would have more than {} bytes", most_);
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
