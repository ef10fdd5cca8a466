// prefix_tree.h — the prefix cache: full pages of KV memory by their contents, so that an equal prefix is
// computed once.
//
// A node is a page that was computed completely; its parent is the page before it. A node is `busy` while it
// is in the table of a sequence, and `idle` otherwise. Idle nodes are the cache, and their memory is
// available to whoever needs a page. References are counted by page_pool, which calls rest() and wake().
//
// Idle leaves are evicted, the one that became idle first before the others. A conversation that nobody
// continues thus loses its end before its beginning.
//
// A node whose depth is a power of two is a landmark: those who send prompts here are told the landmarks, so
// that they know which prefixes are there, to within half of their pages, at a small part of the names.
//
// Thread safety: the owner's thread only. No call allocates after construction; memory is touched as pages
// come into use.
//
// Invariants:
//   1. A node's parent is a node, and a busy node's parent is busy. While there is an idle node, there is
//      therefore an idle leaf.
//   2. Names are unique: no two nodes hold the same ids behind the same parent under the same salt.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/cache/page_index.h"
#include "core/cache/page_name.h"

namespace weir::core {

using page_ids = std::span<const token_id, page_tokens>;

// A page whose contents are at another one from now on.
struct page_move {
  page_id from = no_page, to = no_page;
};

class prefix_tree {
 public:
  explicit prefix_tree(std::uint32_t pages);

  // The page that is called `name` and holds `ids`, or no_page.
  page_id find(page_name name, page_ids ids) const;

  // Of the pages that follow the one called `before`, the one whose ids have the longest common beginning
  // with `ids`, and the length of that beginning. Only the newest `siblings_looked_at` pages are compared,
  // which bounds the cost.
  struct likeness {
    page_id page = no_page;
    std::uint32_t equal = 0;
  };
  likeness closest(page_name before, std::span<const token_id> ids) const;

  // Makes a page a busy node. REQUIRES: it is not a node; find(name, ids) is no_page; `parent` is the page
  // called `before`, or no_page if `before` is a root name.
  void insert(page_id p, page_id parent, page_name before, page_name name, page_ids ids);

  // Name and token ids of a node. They stay readable after evict(), until the page is a node again.
  page_name name_of(page_id p) const { return nodes_[index(p)].name; }
  page_ids ids_of(page_id p) const { return page_ids(ids_.get() + index(p) * page_tokens, page_tokens); }

  // The page is a node.
  bool holds(page_id p) const { return index(p) < nodes_.size() && nodes_[index(p)].held; }

  // Makes a node idle: its last reference was removed. REQUIRES: a busy node without busy children.
  void rest(page_id p);
  // Makes a node busy: it has a reference again. REQUIRES: an idle node.
  void wake(page_id p);

  // Removes the leaf that has been idle longest from the tree, and returns its page. REQUIRES: idle() > 0.
  page_id evict();

  // Removes a leaf behind an idle node from the tree, or the node where there is none, and returns its page.
  // What is behind an idle node is idle, too. REQUIRES: `p` is an idle node.
  page_id evict_behind(page_id p);

  // Pages that were copied to others and take their places. `to` of each is no node and below its `from`;
  // pages that are no nodes are left out. REQUIRES: no page is twice in the list
  void move(std::span<const page_move> moves);

  // A landmark: the first half of a node's name, and its page.
  struct landmark {
    std::uint64_t name = 0;
    page_id page = no_page;
  };
  // All of them, in no order.
  std::span<const landmark> landmarks() const noexcept { return landmarks_; }
  // How often a landmark came or went.
  std::uint64_t landmark_changes() const noexcept { return landmark_changes_; }

  std::uint32_t size() const noexcept { return size_; }  // nodes
  std::uint32_t idle() const noexcept { return idle_; }  // idle nodes

  // Checks the invariants; returns an empty string, or a description of a violation. `busy(page)`: whether
  // the page is in a table.
  template <class F>
  std::string check(F busy) const;

  static constexpr int siblings_looked_at = 16;

 private:
  struct node {
    page_name name, before;
    page_id parent = no_page;
    std::uint32_t children = 0;
    std::uint64_t rested = 0;  // when it became idle, counted in calls of rest()
    std::uint32_t place = 0;   // index in leaves_, while it is an idle leaf
    std::uint32_t depth = 0;   // nodes from the beginning of its prefix to it, itself included
    std::uint32_t mark = 0;    // index in landmarks_, while it is one
    bool held = false, busy = false;
  };
  static std::size_t index(page_id p) { return static_cast<std::size_t>(p); }
  bool idle_leaf(const node& n) const { return n.held && !n.busy && n.children == 0; }

  // leaves_ has the idle leaves as a binary heap, the one that has been idle longest at the front.
  bool before(page_id a, page_id b) const { return nodes_[index(a)].rested < nodes_[index(b)].rested; }
  void put(std::size_t place, page_id p);
  void lift(std::size_t place);
  void sink(std::size_t place);
  page_id child_of(page_id p) const;
  void remove(page_id leaf);
  void add_leaf(page_id p);
  void remove_leaf(page_id p);
  static bool is_landmark(const node& n) noexcept { return std::has_single_bit(n.depth); }
  void remove_landmark(const node& n);

  std::vector<node> nodes_;          // [pages in use so far], by page
  std::unique_ptr<token_id[]> ids_;  // [pages, page_tokens]
  page_index by_name_, by_before_;
  std::vector<page_id> leaves_;
  std::vector<landmark> landmarks_;
  std::uint64_t landmark_changes_ = 0;
  std::uint32_t size_ = 0, idle_ = 0;
  std::uint64_t rests_ = 0;
};

template <class F>
std::string prefix_tree::check(F busy) const {
  std::vector<std::uint32_t> children(nodes_.size(), 0);
  std::uint32_t held = 0, idle = 0, leaves = 0, landmarks = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const node& n = nodes_[i];
    if (!n.held) continue;
    ++held;
    idle += n.busy ? 0 : 1;
    leaves += idle_leaf(n) ? 1 : 0;
    const auto p = static_cast<page_id>(i);
    if (n.busy != busy(p))
      return "page " + std::to_string(p) + " is busy in the tree or in a table, not in both";
    if (idle_leaf(n) && (n.place >= leaves_.size() || leaves_[n.place] != p))
      return "page " + std::to_string(p) + " is an idle leaf that cannot be evicted";
    landmarks += is_landmark(n) ? 1 : 0;
    if (is_landmark(n) &&
        (n.mark >= landmarks_.size() || landmarks_[n.mark].page != p || landmarks_[n.mark].name != n.name.hi))
      return "page " + std::to_string(p) + " is a landmark that is not among them";
    if (n.depth != (n.parent == no_page ? 1 : nodes_[index(n.parent)].depth + 1))
      return "page " + std::to_string(p) + " has a wrong depth";
    if (n.parent == no_page) continue;
    const node& parent = nodes_[index(n.parent)];
    if (!parent.held || parent.name != n.before) return "page " + std::to_string(p) + " has lost its parent";
    if (n.busy && !parent.busy) return "page " + std::to_string(p) + " is busy behind an idle parent";
    ++children[index(n.parent)];
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].held && nodes_[i].children != children[i])
      return "page " + std::to_string(i) + " counts its children wrongly";
  }
  if (held != size_ || idle != idle_ || leaves != leaves_.size() || landmarks != landmarks_.size())
    return "the prefix tree counts its nodes wrongly";
  return {};
}

}  // namespace weir::core
