#include "core/text/answer/plan.h"

#include <algorithm>

namespace weir::core {
namespace {

constexpr std::string_view white = " \t\r\n";
constexpr char mark_byte = '\xFF';
constexpr std::size_t most_marks = 64;

std::string_view stripped(std::string_view s) {
  const auto from = s.find_first_not_of(white);
  return from == s.npos ? std::string_view() : s.substr(from, s.find_last_not_of(white) + 1 - from);
}

// The longest part of `s` from `at` on that looks like a mark and is one token; empty: there is none.
std::string_view mark_at(std::string_view s, std::size_t at, const tokenizer& t) {
  constexpr std::size_t shortest = 4;
  const char closer = s[at] == '<' ? '>' : s[at] == '[' ? ']' : '\0';
  if (closer == '\0') return {};
  for (auto end = s.rfind(closer); end != s.npos && end >= at + shortest - 1;
       end = s.rfind(closer, end - 1)) {
    const auto piece = s.substr(at, end + 1 - at);
    if (t.id_of(std::string(piece))) return piece;
  }
  return {};
}

std::vector<std::string_view> spellings_of(const answer_format& f) {
  const call_format& c = f.calls;
  std::vector<std::string_view> all = {c.section_open, c.section_close,  c.open,           c.close,
                                       c.open_too,     c.id_end,         c.id_open,        c.middle,
                                       c.name_end,     c.key_open,       c.key_end,        c.value_close,
                                       c.quote,        f.reasoning.open, f.reasoning.close};
  const auto words = envelope_words(f.messages);
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

}  // namespace

std::span<const std::string_view> envelope_words(envelope e) {
  static constexpr std::string_view harmony[] = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>",
                                                 "<|end|>",   "<|return|>",  "<|call|>"};
  static constexpr std::string_view recipients[] = {"<|start|>", "<|message|>", "<|eom|>", "<|eot|>"};
  switch (e) {
    case envelope::harmony:
      return harmony;
    case envelope::recipients:
      return recipients;
    case envelope::none:
      break;
  }
  return {};
}

known_format::known_format(answer_format f, const tokenizer& t) : format_(std::move(f)) {
  for (const auto spelling : spellings_of(format_)) {
    for (std::size_t at = 0; at < spelling.size();) {
      const auto mark = mark_at(spelling, at, t);
      at += std::max<std::size_t>(mark.size(), 1);
      if (mark.empty() || tokens_.size() == most_marks) continue;
      const token_id id = *t.id_of(std::string(mark));
      const auto same = [&](const known_mark& m) { return m.id == id; };
      if (std::ranges::none_of(tokens_, same)) tokens_.push_back({id, std::string(mark), t.is_special(id)});
    }
  }
  std::ranges::sort(tokens_, {}, &known_mark::id);
}

int known_format::mark_of(token_id id) const noexcept {
  const auto at = std::ranges::lower_bound(tokens_, id, {}, &known_mark::id);
  return at == tokens_.end() || at->id != id ? -1 : static_cast<int>(at - tokens_.begin());
}

const known_mark* known_format::mark_beginning(std::string_view text) const noexcept {
  const known_mark* found = nullptr;
  for (const auto& m : tokens_)
    if (text.starts_with(m.spelling) && (!found || m.spelling.size() > found->spelling.size())) found = &m;
  return found;
}

std::string known_format::compared(std::string_view spelling) const {
  std::string out;
  spelling = stripped(spelling);
  while (!spelling.empty()) {
    if (const known_mark* found = mark_beginning(spelling)) {
      append_mark(out, static_cast<int>(found - tokens_.data()));
      spelling.remove_prefix(found->spelling.size());
    } else {
      out += spelling.front();
      spelling.remove_prefix(1);
    }
  }
  return out;
}

void known_format::append_mark(std::string& out, int mark) {
  out += mark_byte;
  out += static_cast<char>(0x80 + mark);
}

}  // namespace weir::core
