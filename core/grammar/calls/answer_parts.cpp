#include "core/grammar/calls/answer_parts.h"

#include <algorithm>
#include <array>

#include "core/grammar/regex/regex.h"

namespace weir::core::grammar {
namespace {

constexpr std::string_view white = " \t\r\n";

bool only_single_bytes(const tokenizer& words) {
  for (std::uint32_t id = 0; id < words.vocab_size(); ++id) {
    const auto i = static_cast<token_id>(id);
    if (words.token_bytes(i).size() > 1 && !words.is_special(i)) return false;
  }
  return true;
}

}  // namespace

std::string_view without_white(std::string_view s) {
  const auto from = s.find_first_not_of(white);
  return from == s.npos ? std::string_view() : s.substr(from, s.find_last_not_of(white) + 1 - from);
}

answer_parts::answer_parts(rules& r, const answer_format& format, const tokenizer* words) : rules_(r) {
  if (!words) return;
  known_.emplace(format, *words);
  single_bytes_ = only_single_bytes(*words);
}

std::vector<answer_parts::piece> answer_parts::cut(std::string_view spelling) const {
  std::vector<piece> out;
  while (!spelling.empty()) {
    if (const known_mark* found = known_ ? known_->mark_beginning(spelling) : nullptr) {
      out.push_back({found->id, {}});
      spelling.remove_prefix(found->spelling.size());
      continue;
    }
    if (out.empty() || out.back().token) out.emplace_back();
    out.back().text += spelling.front();
    spelling.remove_prefix(1);
  }
  return out;
}

part_id answer_parts::spelled(std::string_view spelling) {
  std::vector<part_id> parts;
  for (const piece& p : cut(spelling))
    parts.push_back(p.token ? rules_.tokens({*p.token}) : rules_.literal(p.text));
  return rules_.sequence(parts);
}

std::optional<token_id> answer_parts::token_in(std::string_view spelling) const {
  for (const piece& p : cut(spelling))
    if (p.token) return p.token;
  return std::nullopt;
}

std::optional<std::vector<token_name>> answer_parts::tokens_of(spellings which) const {
  std::vector<token_name> out;
  for (const auto s : which) {
    if (s.empty()) continue;
    const auto token = token_in(s);
    if (!token) return std::nullopt;
    out.emplace_back(*token);
  }
  return out;
}

regex_id answer_parts::flexible(std::string_view spelling) {
  std::vector<regex_id> parts;
  byte_set spaces;
  for (const char c : white) spaces.set(static_cast<unsigned char>(c));
  for (std::string_view rest = without_white(spelling); !rest.empty();) {
    const auto word = rest.substr(0, std::min(rest.find_first_of(white), rest.size()));
    parts.push_back(pool().literal(word));
    rest.remove_prefix(word.size());
    if (rest.empty()) break;
    parts.push_back(pool().any_number(pool().bytes(spaces)));
    rest.remove_prefix(rest.find_first_not_of(white));
  }
  return pool().concat(parts);
}

regex_id answer_parts::characters_without(spellings which) {
  regex_id out = any_text(pool());
  for (const auto s : which) {
    if (s.empty()) continue;
    auto& without = pool().remembered(fmt::format("answer: without {}", s));
    if (without == regex_pool::nothing) {
      const std::array found{regex_pool::anything, flexible(s), regex_pool::anything};
      without = pool().complement(pool().concat(found));
    }
    out = pool().both(out, without);
  }
  return out;
}

part_id answer_parts::text_without(spellings which) {
  if (auto tokens = tokens_of(which)) return rules_.any_number(rules_.no_token_of(std::move(*tokens)));
  return rules_.terminal(characters_without(which));
}

std::optional<part_id> answer_parts::text_without(spellings which, std::uint32_t most) {
  if (auto tokens = tokens_of(which)) return rules_.repeat(rules_.no_token_of(std::move(*tokens)), 0, most);
  if (!single_bytes_) return std::nullopt;
  byte_set any;
  any.set();
  return rules_.terminal(pool().both(characters_without(which), pool().repeat(pool().bytes(any), 0, most)));
}

part_id answer_parts::white_like(std::string_view spelling) {
  constexpr std::uint32_t little = 2;
  const auto most = std::max(little, static_cast<std::uint32_t>(spelling.size()));
  byte_set spaces;
  for (const char c : white) spaces.set(static_cast<unsigned char>(c));
  return rules_.terminal(pool().repeat(pool().bytes(spaces), 0, most));
}

regex_id answer_parts::language(std::string_view expression) {
  auto& known = pool().remembered(fmt::format("answer: {}", expression));
  if (known != regex_pool::nothing) return known;
  const auto read = parse_regex(pool(), expression);
  if (read) known = *read;
  return known;
}

}  // namespace weir::core::grammar
