#include "core/grammar/token_trie.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/text/unicode.h"

namespace weir::core::grammar {

id_tree::id_tree(std::span<const std::pair<std::string_view, token_id>> texts) : nodes_{{1, 0, 0, 0}} {
  std::vector<std::uint32_t> path{0};  // nodes from the root to the last text
  std::string_view last;
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth + 1; path.pop_back()) nodes_[path.back()].end = size();
  };
  for (const auto& [text, id] : texts) {
    const auto shared = static_cast<std::size_t>(
        std::mismatch(last.begin(), last.end(), text.begin(), text.end()).first - last.begin());
    close_to(shared);
    for (auto d = shared; d < text.size(); ++d) {
      path.push_back(size());
      nodes_.push_back({0, static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(d + 1),
                        static_cast<unsigned char>(text[d])});
    }
    ids_.push_back(id);
    max_depth_ = std::max(max_depth_, static_cast<std::uint32_t>(text.size()));
    last = text;
  }
  close_to(0);
  nodes_[0].end = size();
}

std::optional<id_tree> id_tree::below(const id_tree& from, std::span<const std::uint32_t> nodes,
                                      std::size_t most, const byte_set* first) {
  id_tree out;
  std::size_t seen = 0;
  // Nodes of `from` that are to become the children of the node on top, by their byte.
  struct level {
    std::uint32_t node = 0;                                         // of `out`
    std::vector<std::pair<unsigned char, std::uint32_t>> children;  // byte, node of `from`; sorted
    std::size_t next = 0;                                           // child
  };
  const auto opened = [&](std::uint32_t node, const std::vector<std::uint32_t>& sources) {
    level l{node, {}, 0};
    for (auto s = sources.begin(); s != sources.end() && seen + l.children.size() <= most; ++s)
      for (auto c = *s + 1; c < from[*s].end; c = from[c].end)
        if (node != 0 || !first || (*first)[from[c].byte]) l.children.emplace_back(from[c].byte, c);
    seen += l.children.size();
    if (seen > most) return l;
    std::stable_sort(l.children.begin(), l.children.end(),
                     [](const auto& x, const auto& y) { return x.first < y.first; });
    return l;
  };
  std::vector<level> open;
  open.push_back(opened(0, {nodes.begin(), nodes.end()}));
  while (!open.empty() && seen <= most) {
    auto& top = open.back();
    if (top.next == top.children.size()) {
      out.nodes_[top.node].end = out.size();
      open.pop_back();
      continue;
    }
    const auto b = top.children[top.next].first;
    std::vector<std::uint32_t> sources;
    for (; top.next < top.children.size() && top.children[top.next].first == b; ++top.next)
      sources.push_back(top.children[top.next].second);
    const auto depth = static_cast<std::uint16_t>(open.size());
    out.max_depth_ = std::max<std::uint32_t>(out.max_depth_, depth);
    const auto made = out.size();
    out.nodes_.push_back({0, static_cast<std::uint32_t>(out.ids_.size()), depth, b});
    for (const auto s : sources) {
      const auto ids = from.ids(s);
      out.ids_.insert(out.ids_.end(), ids.begin(), ids.end());
    }
    open.push_back(opened(made, sources));
  }
  if (seen > most) return std::nullopt;
  return out;
}

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
  // A character that is a token, or whose bytes all are.
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
