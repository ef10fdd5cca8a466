#include "core/text/tokenizer/sentence_normalizer.h"

#include <algorithm>

#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

constexpr std::string_view space = "\u2581";

// What the beginning of a text becomes, and its bytes.
charsmap::match next_of(std::string_view text, const sentence_rules& rules) {
  if (const std::size_t fixed = rules.user_defined.longest_at(text)) return {fixed, text.substr(0, fixed)};
  if (rules.replacements) {
    const auto found = rules.replacements->longest(text);
    if (found.size > 0) return found;
  }
  const utf8_step step = next_utf8(text);  // a string of the table may have ended inside a character
  if (step.what != utf8_step::kind::whole) return {1, replacement_character};
  return {step.size, text.substr(0, step.size)};
}

std::string_view without_leading_spaces(std::string_view text, const sentence_rules& rules,
                                        work_steps& all) {
  while (!text.empty()) {
    all.add();
    const auto next = next_of(text, rules);
    if (next.by != " ") break;
    text.remove_prefix(next.size);
  }
  return text;
}

void append_with_spaces(std::string& out, std::string_view text) {
  for (const char c : text) c == ' ' ? out += space : out += c;
}

}  // namespace

double growth_of(const sentence_rules& rules) noexcept {
  const auto wide = static_cast<double>(space.size());
  const double replaced = rules.replacements ? rules.replacements->growth(space.size()) : 1;
  return std::max(replaced, wide) + (rules.leading_space ? wide : 0);
}

std::string normalize(std::string_view text, bool opens, const sentence_rules& rules, turn* at) {
  work_steps all(at);
  const bool begins = opens || !rules.at_the_start_alone;
  if (rules.removes_extra_spaces && begins) text = without_leading_spaces(text, rules, all);
  std::string out;
  if (text.empty()) return out;
  out.reserve(text.size() + text.size() / 2);
  if (rules.leading_space && begins) out += space;
  for (bool after_space = rules.removes_extra_spaces && begins; !text.empty();) {
    all.add();
    auto next = next_of(text, rules);
    text.remove_prefix(next.size);
    while (after_space && next.by.starts_with(' ')) next.by.remove_prefix(1);
    if (!next.by.empty()) {
      append_with_spaces(out, next.by);
      after_space = next.by.ends_with(' ');
    }
    after_space = after_space && rules.removes_extra_spaces;
  }
  if (rules.removes_extra_spaces)
    while (out.ends_with(space)) out.resize(out.size() - space.size());
  return out;
}

}  // namespace weir::core
