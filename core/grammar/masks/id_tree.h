// id_tree.h — byte strings with ids, as a tree: the tokens of a vocabulary, or their last bytes.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/grammar/regex/regex_pool.h"
#include "core/token.h"

namespace weir::core::grammar {

// Which kinds of bytes occur, one bit a kind: letters, digits, and so on. A kind has one byte or more.
using byte_kinds = std::uint32_t;
byte_kinds kind_of(unsigned char byte);
// The kinds that have all their bytes in the set.
byte_kinds kinds_within(const byte_set&);

// Nodes are in depth-first order; node 0 is the root.
class id_tree {
 public:
  struct node {
    std::uint32_t end = 0;          // index behind the last node below this one
    std::uint32_t first_id = 0;     // its ids are [first_id, first_id of the next node)
    std::uint32_t first_child = 0;  // its children are [first_child, first_child of the next node)
    std::uint16_t depth = 0;
    unsigned char byte = 0;   // from its parent; the root's means nothing
    unsigned char below = 0;  // bytes of the longest string below, at most 255; 0 in a tree of below()
  };

  id_tree() : nodes_{{1, 0, 0, 0, 0, 0}} {}
  // REQUIRES: `texts` is sorted by text.
  explicit id_tree(std::span<const std::pair<std::string_view, token_id>> texts);

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const node& operator[](std::uint32_t i) const { return nodes_[i]; }
  // Ids of one node; of a node and all below it.
  std::span<const token_id> ids(std::uint32_t i) const { return ids_between(i, i + 1); }
  std::span<const token_id> ids_below(std::uint32_t i) const { return ids_between(i, nodes_[i].end); }
  bool has_children(std::uint32_t i) const { return nodes_[i].end > i + 1; }
  std::uint32_t max_depth() const { return max_depth_; }
  std::size_t bytes() const {
    return nodes_.size() * sizeof(node) + children_.size() * (sizeof children_[0] + 1) +
           4 * (ids_.size() + kinds_.size());
  }

  // Whether every string below the node has at most `length` bytes, all of these kinds. Always false for a
  // tree that below() made, which does not know.
  bool all_below(std::uint32_t i, byte_kinds kinds, std::uint32_t length) const {
    return !kinds_.empty() && (kinds_[i] & ~kinds) == 0 && nodes_[i].below <= length &&
           (nodes_[i].below < 255 || length == unbounded);
  }

  // The child by a byte.
  std::optional<std::uint32_t> child(std::uint32_t i, unsigned char byte) const {
    const auto first = child_bytes_.begin() + nodes_[i].first_child;
    const auto end = child_bytes_.begin() + children_end(i);
    const auto at = std::lower_bound(first, end, byte);
    if (at == end || *at != byte) return std::nullopt;
    return children_[static_cast<std::size_t>(at - child_bytes_.begin())];
  }

  // Gives each node the state step(state of its parent, byte). A node with the state State{} is skipped, with
  // all nodes below it. The others are visited in order: visit(node, state) says whether to go on below.
  template <class State, class Step, class Visit>
  void walk(State start, Step step, Visit visit) const;

  // One tree of the strings below the given nodes of another tree. `first`: only strings that begin with one
  // of these bytes; null: all. nullopt: more than `most` nodes would have to be looked at.
  static std::optional<id_tree> below(const id_tree& from, std::span<const std::uint32_t> nodes,
                                      std::size_t most, const byte_set* first = nullptr);

 private:
  void list_children();
  void find_kinds();
  std::uint32_t children_end(std::uint32_t i) const {
    return i + 1 < size() ? nodes_[i + 1].first_child : static_cast<std::uint32_t>(children_.size());
  }
  std::span<const token_id> ids_between(std::uint32_t first, std::uint32_t end) const {
    const std::size_t a = nodes_[first].first_id;
    const std::size_t b = end < nodes_.size() ? nodes_[end].first_id : ids_.size();
    return std::span(ids_).subspan(a, b - a);
  }
  std::vector<node> nodes_;
  // The bytes of siblings lie together, because a walk reads nothing else of most children.
  std::vector<unsigned char> child_bytes_;
  std::vector<std::uint32_t> children_;
  std::vector<byte_kinds> kinds_;  // [nodes] that occur below each; empty in a tree of below()
  std::vector<token_id> ids_;
  std::uint32_t max_depth_ = 0;
};

template <class State, class Step, class Visit>
void id_tree::walk(State start, Step step, Visit visit) const {
  struct place {
    State state;
    std::uint32_t at, end;  // children that are left
  };
  std::vector<place> path;
  path.reserve(max_depth_ + 1);
  path.push_back({start, 0, children_end(0)});
  while (!path.empty()) {
    auto& top = path.back();
    if (top.at == top.end) {
      path.pop_back();
      continue;
    }
    const auto at = top.at++;
    const State to = step(top.state, child_bytes_[at]);
    if (to == State{}) continue;
    const auto i = children_[at];
    if (visit(i, to) && has_children(i)) path.push_back({to, nodes_[i].first_child, children_end(i)});
  }
}

}  // namespace weir::core::grammar
