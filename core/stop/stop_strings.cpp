#include "core/stop/stop_strings.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace weir::core {

// Makes the nodes breadth first. Sorted strings that begin alike stand side by side, so a node is a range of
// them.
class stop_strings::builder {
 public:
  explicit builder(std::span<const std::string> all) {
    for (std::uint32_t i = 0; i < all.size(); ++i) sorted_.emplace_back(all[i], i);
    std::ranges::sort(sorted_);
    const auto same = std::ranges::unique(sorted_, {}, &numbered::first);
    sorted_.erase(same.begin(), same.end());
    add({}, {0, sorted_.size()});
    for (node_id n = root; n < nodes_.size(); ++n) expand(n);
  }

  std::vector<node> take() { return std::move(nodes_); }

 private:
  using numbered = std::pair<std::string_view, std::uint32_t>;
  struct range {
    std::size_t from, to;
  };

  void add(const node& n, range of) {
    nodes_.push_back(n);
    ranges_.push_back(of);
  }

  // Completes a node and adds its children. The nodes of shorter texts are complete by then.
  void expand(node_id n) {
    auto [from, to] = ranges_[n];
    const std::uint32_t depth = nodes_[n].depth;
    if (from < to && sorted_[from].first.size() == depth) {
      nodes_[n].matched = depth;
      nodes_[n].which = sorted_[from++].second;
    } else if (n != root) {
      nodes_[n].matched = nodes_[nodes_[n].fallback].matched;
      nodes_[n].which = nodes_[nodes_[n].fallback].which;
    }
    nodes_[n].first = static_cast<node_id>(nodes_.size());
    while (from < to) {
      const char c = sorted_[from].first[depth];
      auto end = from;
      while (end < to && sorted_[end].first[depth] == c) ++end;
      const auto byte = static_cast<unsigned char>(c);
      const node_id fallback = n == root ? root : next(nodes_, nodes_[n].fallback, byte);
      add({.depth = depth + 1, .fallback = fallback, .byte = byte}, {from, end});
      ++nodes_[n].children;
      from = end;
    }
  }

  std::vector<numbered> sorted_;
  std::vector<node> nodes_;
  std::vector<range> ranges_;  // [nodes] of sorted_
};

stop_strings::stop_strings(std::span<const std::string> all) {
  assert(std::ranges::none_of(all, &std::string::empty));
  if (!all.empty()) nodes_ = builder(all).take();
}

// The child of `n` by `byte`; root: there is none.
stop_strings::node_id stop_strings::child(std::span<const node> all, node_id n, unsigned char byte) noexcept {
  const auto children = all.subspan(all[n].first, all[n].children);
  if (children.size() == 1) return children.front().byte == byte ? all[n].first : root;
  const auto found = std::ranges::lower_bound(children, byte, {}, &node::byte);
  if (found == children.end() || found->byte != byte) return root;
  return all[n].first + static_cast<node_id>(found - children.begin());
}

stop_strings::node_id stop_strings::next(std::span<const node> all, node_id n, unsigned char byte) noexcept {
  for (;;) {
    const node_id to = child(all, n, byte);
    if (to != root || n == root) return to;
    n = all[n].fallback;
  }
}

stop_strings::node_id stop_strings::next(node_id n, unsigned char byte) const noexcept {
  return next(nodes_, n, byte);
}

std::vector<std::string> stop_strings::texts() const {
  std::vector<std::string> out, paths(nodes_.size());  // the text of each node, until it has its children
  for (node_id n = root; n < nodes_.size(); ++n) {
    const node& at = nodes_[n];
    const std::string path = std::move(paths[n]);
    for (node_id c = at.first; c < at.first + at.children; ++c)
      paths[c] = path + static_cast<char>(nodes_[c].byte);
    if (at.depth == 0 || at.matched != at.depth) continue;
    if (out.size() <= at.which) out.resize(at.which + 1);
    out[at.which] = path;
  }
  for (std::string& s : out)
    if (s.empty()) s = out.front();  // it was equal to one before it, and no match has its index
  return out;
}

}  // namespace weir::core
