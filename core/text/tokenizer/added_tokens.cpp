#include "core/text/tokenizer/added_tokens.h"

#include <algorithm>

#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

constexpr std::size_t most_bytes = 256;  // of a token's text: each place of a text is compared with it

std::size_t last_character(std::string_view text) noexcept {
  std::size_t at = text.size() - 1;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool starts_with_word(std::string_view text) noexcept {
  return !text.empty() && is_word(take_character(text));
}

bool ends_with_word(std::string_view text) noexcept {
  return !text.empty() && starts_with_word(text.substr(last_character(text)));
}

std::size_t leading_space(std::string_view text) noexcept {
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view next = rest;
    if (!is_whitespace(take_character(next))) break;
    rest = next;
  }
  return text.size() - rest.size();
}

std::size_t without_trailing_space(std::string_view text) noexcept {
  while (!text.empty()) {
    std::string_view last = text.substr(last_character(text));
    if (!is_whitespace(take_character(last))) break;
    text.remove_suffix(text.size() - last_character(text));
  }
  return text.size();
}

}  // namespace

added_token parse_added_token(const json_field& field) {
  added_token t;
  t.content = field.at("content").text();
  t.special = field.boolean_or("special", false);
  t.normalized = field.boolean_or("normalized", !t.special);
  t.lstrip = field.boolean_or("lstrip", false);
  t.rstrip = field.boolean_or("rstrip", false);
  t.single_word = field.boolean_or("single_word", false);
  return t;
}

bool overlaps_any(const std::vector<span_of_text>& spans, span_of_text at) noexcept {
  const auto first =
      std::partition_point(spans.begin(), spans.end(), [&](auto& s) { return s.end <= at.begin; });
  return first != spans.end() && first->begin < at.end;
}

std::int32_t trie::child(std::int32_t of, char byte) const noexcept {
  std::int32_t at = nodes_[of].first_child;
  while (at >= 0 && nodes_[at].byte != byte) at = nodes_[at].sibling;
  return at;
}

void trie::add(std::string_view text, std::int32_t value) {
  std::int32_t at = 0;
  for (const char byte : text) {
    std::int32_t next = child(at, byte);
    if (next < 0) {
      next = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({-1, nodes_[at].first_child, -1, byte});
      nodes_[at].first_child = next;
    }
    at = next;
  }
  if (at != 0) nodes_[at].value = value;
}

added_tokens::added_tokens(const std::optional<json_field>& field, const normalizer& n) {
  if (!field) return;
  for (const json_field& item : field->items()) {
    added_token t = parse_added_token(item);
    t.id = static_cast<token_id>(item.at("id").integer(0, largest_added_id));
    add(std::move(t), n, item.path());
  }
}

added_tokens::added_tokens(std::vector<added_token> tokens, const normalizer& n, const std::string& path) {
  for (added_token& t : tokens) add(std::move(t), n, fmt::format("{} {}", path, t.id));
}

// `path`: of the token.
void added_tokens::add(added_token t, const normalizer& n, const std::string& path) {
  const auto place = static_cast<std::int32_t>(tokens_.size());
  std::string spelling = t.content;
  if (t.normalized) n.apply(spelling);
  if (std::max(spelling.size(), t.content.size()) > most_bytes)
    bad_field(path + ".content", fmt::format("has more than {} bytes", most_bytes));
  (t.normalized ? normalized_ : raw_).add(spelling, place);
  tokens_.push_back(std::move(t));
}

added_tokens::match added_tokens::longest_at(const trie& t, std::string_view text, std::size_t at,
                                             const std::vector<span_of_text>& plain) const {
  match best;
  t.walk(text.substr(at), [&](std::int32_t place, std::size_t size) {
    const added_token& token = tokens_[static_cast<std::size_t>(place)];
    if (token.special && overlaps_any(plain, {at, at + size})) return;
    best = {&token, size};
  });
  return best;
}

std::vector<text_segment> added_tokens::cut(stage s, std::string_view text,
                                            const std::vector<span_of_text>& plain, turn* at_turn) const {
  const trie& strings = s == stage::raw ? raw_ : normalized_;
  std::vector<text_segment> out;
  std::size_t done = 0;
  work_steps all(at_turn);
  for (std::size_t at = 0; at < text.size() && !strings.empty();) {
    all.add();
    const match m = longest_at(strings, text, at, plain);
    std::size_t begin = at, end = at + m.size;
    if (m.token == nullptr) {
      ++at;
      continue;
    }
    at = end;
    if (m.token->single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (m.token->lstrip) begin = done + without_trailing_space(text.substr(done, begin - done));
    if (m.token->rstrip) end += leading_space(text.substr(end));
    if (done < begin) out.push_back({{done, begin}, std::nullopt});
    out.push_back({{begin, end}, m.token->id});
    done = at = end;
  }
  if (done < text.size()) out.push_back({{done, text.size()}, std::nullopt});
  return out;
}

}  // namespace weir::core
