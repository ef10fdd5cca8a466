#include "core/grammar/masks/token_trie.h"

#include <algorithm>
#include <array>

#include "core/text/tokenizer/unicode.h"

namespace weir::core::grammar {

token_trie::token_trie(std::shared_ptr<const tokenizer> t) : tokenizer_(std::move(t)) {
  vocab_size_ = tokenizer_->vocab_size();
  starts_.reserve(vocab_size_ + 1);
  for (std::uint32_t id = 0; id < vocab_size_; ++id) {
    starts_.push_back(bytes_.size());
    const auto i = static_cast<token_id>(id);
    if (!tokenizer_->is_special(i)) bytes_ += tokenizer_->token_bytes(i);
  }
  starts_.push_back(bytes_.size());
  std::vector<std::pair<std::string_view, token_id>> texts;
  texts.reserve(vocab_size_);
  for (std::uint32_t id = 0; id < vocab_size_; ++id)
    if (const auto s = text(static_cast<token_id>(id)); !s.empty())
      texts.emplace_back(s, static_cast<token_id>(id));
  std::sort(texts.begin(), texts.end());
  tree_ = id_tree(texts);
  part_plain(texts);
  const auto probe = tokenizer_->encode("a", {.add_special = false, .parse_special = false});
  leading_space_ = !probe.empty() && text(probe[0]).substr(0, 1) == " ";
  find_alphabet();
}

code_points token_trie::plain() { return code_points(0x20, 0x10FFFF).without(code_points::of(U"\"\\\x7F")); }

void token_trie::part_plain(std::span<const std::pair<std::string_view, token_id>> texts) {
  std::vector<std::pair<std::string_view, token_id>> others;
  all_plain_ = token_mask(vocab_size_);
  for (const auto& [text, id] : texts) {
    std::uint32_t characters = 0;
    bool is_plain = true;
    for (auto rest = text; is_plain && !rest.empty(); ++characters) {
      const auto step = next_utf8(rest);
      const auto first = static_cast<unsigned char>(rest[0]);
      is_plain = step.what == utf8_step::kind::whole && first >= 0x20 && first != '"' && first != '\\' &&
                 first != 0x7F;
      rest.remove_prefix(step.size);
    }
    if (!is_plain) {
      others.emplace_back(text, id);
      continue;
    }
    plain_.emplace_back(characters, id);
    all_plain_.set(id);
  }
  std::sort(plain_.begin(), plain_.end());
  all_plain_.finish();
  others_ = id_tree(others);
}

token_mask token_trie::plain_upto(std::uint32_t characters) const {
  const auto end = std::upper_bound(plain_.begin(), plain_.end(), characters,
                                    [](std::uint32_t n, const auto& p) { return n < p.first; });
  const auto longer = static_cast<std::size_t>(plain_.end() - end);
  if (longer == 0) return all_plain_;
  token_mask out(vocab_size_);
  for (auto p = plain_.begin(); p != end; ++p) out.set(p->second);
  return out;
}

std::string_view token_trie::text(token_id id) const {
  if (!known(id)) return {};
  const auto i = static_cast<std::size_t>(id);
  return std::string_view(bytes_).substr(starts_[i], starts_[i + 1] - starts_[i]);
}

void token_trie::find_alphabet() {
  std::array<bool, 256> single{};
  for (std::uint32_t id = 0; id < vocab_size_; ++id)
    if (const auto s = text(static_cast<token_id>(id)); s.size() == 1)
      single[static_cast<unsigned char>(s[0])] = true;
  complete_ = true;
  for (std::size_t b = 0; b <= 0xF4; ++b) complete_ = complete_ && (single[b] || b == 0xC0 || b == 0xC1);
  if (complete_) return;
  // Adds characters that are tokens, and all of several bytes if all bytes of such characters are tokens.
  for (std::uint32_t id = 0; id < vocab_size_; ++id) {
    auto s = text(static_cast<token_id>(id));
    if (s.empty()) continue;
    const auto step = next_utf8(s);
    if (step.what != utf8_step::kind::whole || step.size != s.size()) continue;
    const auto c = take_character(s);
    alphabet_.add(c, c);
  }
  const auto all = [&](std::size_t first, std::size_t last) {
    return std::all_of(single.begin() + static_cast<std::ptrdiff_t>(first),
                       single.begin() + static_cast<std::ptrdiff_t>(last) + 1, [](bool b) { return b; });
  };
  if (all(0x80, 0xBF) && all(0xC2, 0xF4)) alphabet_.add(0x80, 0x10FFFF);
}

}  // namespace weir::core::grammar
