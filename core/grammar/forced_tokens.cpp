// Canonical tokens: the tokenizer encodes the text together with the forced bytes. A token of the vocabulary
// may begin within the forced bytes and end behind them. From the first place of such a token on, nothing is
// forced: the tokenizer could choose other tokens there once it sees the bytes that follow.
#include "core/grammar/forced_tokens.h"

#include <algorithm>

#include "core/text/tokenizer/unicode.h"

namespace weir::core::grammar {
namespace {

// The search for a token that ends behind the forced bytes begins this number of bytes before their end. Few
// tokens are longer.
constexpr std::size_t most_reach = 32;

// The whole characters at the beginning of `text`.
std::string_view whole_characters(std::string_view text) {
  auto rest = text;
  while (!rest.empty()) {
    const auto step = next_utf8(rest);
    if (step.what != utf8_step::kind::whole) break;
    rest.remove_prefix(step.size);
  }
  return text.substr(0, text.size() - rest.size());
}

// The last tokens of `written`, at most `most_before` bytes, which are encoded again. Where the tokenizer
// puts a space in front of a text, the first of these tokens begins with a space.
std::span<const token_id> context_of(const token_trie& trie, std::span<const token_id> written) {
  std::size_t first = written.size(), bytes = 0;
  for (std::size_t i = written.size(); i-- > 0;) {
    const auto text = trie.text(written[i]);
    bytes += text.size();
    if (text.empty() || bytes > most_before) break;
    if (!trie.leading_space() || text[0] == ' ') first = i;
  }
  return written.subspan(first);
}

// Whether the vocabulary has a token that begins with `head` and then a byte that the constraint allows at
// `behind`.
bool reaches_beyond(constraint& over, parse_id behind, std::string_view head) {
  const auto& tree = over.trie().tree();
  std::uint32_t at = 0;
  for (const char b : head) {
    auto child = at + 1;
    while (child < tree[at].end && tree[child].byte != static_cast<unsigned char>(b)) child = tree[child].end;
    if (child >= tree[at].end) return false;
    at = child;
  }
  for (auto child = at + 1; child < tree[at].end; child = tree[child].end)
    if (over.step(behind, tree[child].byte) != constraint::dead) return true;
  return false;
}

// Number of the stretch's first bytes whose tokens are the same whatever allowed text follows.
std::size_t settled_bytes(constraint& over, parse_id behind, std::string_view stretch) {
  auto at = stretch.size() - std::min(stretch.size(), most_reach);
  while (at < stretch.size() && !reaches_beyond(over, behind, stretch.substr(at))) ++at;
  return at;
}

// Encodes the text of `known` and the forced bytes `stretch` together, and returns the tokens behind `known`.
// Empty: the encoding does not begin with the tokens `known`, or its text is another one.
std::vector<token_id> encoded_behind(const token_trie& trie, std::span<const token_id> known,
                                     std::string_view stretch) {
  std::string text;
  for (const auto id : known) text += trie.text(id);
  text += stretch;
  const bool spaced = trie.leading_space() && text[0] == ' ';
  auto ids = trie.words().encode(std::string_view(text).substr(spaced ? 1 : 0),
                                 {.add_special = false, .parse_special = false});
  std::string back;
  for (const auto id : ids) back += trie.text(id);
  if (back != text || ids.size() < known.size() || !std::equal(known.begin(), known.end(), ids.begin()))
    return {};
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(known.size()));
  return ids;
}

}  // namespace

std::string forced_bytes(constraint& over, parse_id at, std::size_t most) {
  std::string out;
  while (out.size() < most) {
    const auto b = over.only_byte(at);
    if (!b) break;
    at = over.step(at, *b);
    if (at <= constraint::failed) break;
    out += static_cast<char>(*b);
  }
  return out;
}

std::vector<token_id> canonical_tokens(constraint& over, parse_id at, std::span<const token_id> written) {
  const std::string forced = forced_bytes(over, at);
  const auto stretch = whole_characters(forced);
  if (stretch.empty()) return {};
  const auto& trie = over.trie();
  auto ids = encoded_behind(trie, context_of(trie, written), stretch);
  const auto settled = settled_bytes(over, over.step(at, stretch), stretch);
  std::size_t n = 0;
  for (std::size_t end = 0; n < ids.size(); ++n) {
    end += trie.text(ids[n]).size();
    if (end > settled) break;
  }
  ids.resize(n);
  return ids;
}

bool may_force(constraint& over, parse_id at) {
  if (const auto known = over.may_force_known(at)) return *known;
  const std::string forced = forced_bytes(over, at);
  const auto stretch = whole_characters(forced);
  bool some = !stretch.empty() && settled_bytes(over, over.step(at, stretch), stretch) > 0;
  if (!some) some = single_token(over, at).has_value();
  over.remember_may_force(at, some);
  return some;
}

std::optional<token_id> single_token(constraint& over, parse_id at) {
  if (over.may_end(at)) return std::nullopt;
  const auto* mask = over.mask(at);
  if (!mask || mask->count() != 1) return std::nullopt;
  return mask->ids().front();
}

}  // namespace weir::core::grammar
