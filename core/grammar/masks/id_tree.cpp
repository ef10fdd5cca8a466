#include "core/grammar/masks/id_tree.h"

#include <array>

namespace weir::core::grammar {
namespace {

// The kinds of ASCII bytes, chosen by what patterns tell apart. Further kinds: other ASCII bytes,
// continuation bytes of UTF-8, first bytes of characters of 2, 3 and 4 bytes, and bytes that UTF-8 never has.
constexpr std::array<std::string_view, 24> ascii_kinds{" ",
                                                       "\"",
                                                       "\\",
                                                       "0",
                                                       "123456789",
                                                       "abcdef",
                                                       "ghijklmnopqrstuvwxyz",
                                                       "ABCDEF",
                                                       "GHIJKLMNOPQRSTUVWXYZ",
                                                       "_",
                                                       "-",
                                                       ".",
                                                       "/",
                                                       ":",
                                                       ",",
                                                       "'",
                                                       "+",
                                                       "@",
                                                       "#",
                                                       "=",
                                                       "%&?~",
                                                       "()[]",
                                                       "{}<>",
                                                       "!$*;^`|"};

constexpr std::array<std::uint8_t, 256> kinds_of_bytes = [] {
  std::array<std::uint8_t, 256> of{};
  for (std::size_t b = 0; b < 256; ++b)
    of[b] = b < 0x80 ? 24 : b < 0xC0 ? 25 : b >= 0xC2 && b < 0xE0 ? 26 : b < 0xF0 ? 27 : b < 0xF5 ? 28 : 29;
  of[0xC0] = of[0xC1] = 29;
  for (std::size_t k = 0; k < ascii_kinds.size(); ++k)
    for (const char c : ascii_kinds[k]) of[static_cast<unsigned char>(c)] = static_cast<std::uint8_t>(k);
  return of;
}();

}  // namespace

byte_kinds kind_of(unsigned char byte) { return 1u << kinds_of_bytes[byte]; }

byte_kinds kinds_within(const byte_set& set) {
  byte_kinds inside = 0, outside = 0;
  for (std::size_t b = 0; b < 256; ++b) (set[b] ? inside : outside) |= kind_of(static_cast<unsigned char>(b));
  return inside & ~outside;
}

id_tree::id_tree(std::span<const std::pair<std::string_view, token_id>> texts) : nodes_{{1, 0, 0, 0, 0, 0}} {
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
      nodes_.push_back({0, static_cast<std::uint32_t>(ids_.size()), 0, static_cast<std::uint16_t>(d + 1),
                        static_cast<unsigned char>(text[d]), 0});
    }
    ids_.push_back(id);
    max_depth_ = std::max(max_depth_, static_cast<std::uint32_t>(text.size()));
    last = text;
  }
  close_to(0);
  nodes_[0].end = size();
  list_children();
  find_kinds();
}

void id_tree::list_children() {
  children_.reserve(nodes_.size() - 1);
  child_bytes_.reserve(nodes_.size() - 1);
  for (std::uint32_t i = 0; i < size(); ++i) {
    nodes_[i].first_child = static_cast<std::uint32_t>(children_.size());
    for (auto c = i + 1; c < nodes_[i].end; c = nodes_[c].end) {
      children_.push_back(c);
      child_bytes_.push_back(nodes_[c].byte);
    }
  }
}

// Goes from the last node to the first, because children come behind their parents.
void id_tree::find_kinds() {
  kinds_.assign(nodes_.size(), 0);
  for (auto i = size(); i-- > 0;)
    for (auto at = nodes_[i].first_child; at < children_end(i); ++at) {
      const auto c = children_[at];
      kinds_[i] |= kind_of(child_bytes_[at]) | kinds_[c];
      const auto length = std::min(nodes_[c].below + 1, 255);
      nodes_[i].below = std::max(nodes_[i].below, static_cast<unsigned char>(length));
    }
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
      for (auto at = from.nodes_[*s].first_child; at < from.children_end(*s); ++at)
        if (const auto b = from.child_bytes_[at]; node != 0 || !first || (*first)[b])
          l.children.emplace_back(b, from.children_[at]);
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
    out.nodes_.push_back({0, static_cast<std::uint32_t>(out.ids_.size()), 0, depth, b, 0});
    for (const auto s : sources) {
      const auto ids = from.ids(s);
      out.ids_.insert(out.ids_.end(), ids.begin(), ids.end());
    }
    open.push_back(opened(made, sources));
  }
  if (seen > most) return std::nullopt;
  out.list_children();
  return out;
}

}  // namespace weir::core::grammar
