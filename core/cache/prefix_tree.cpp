#include "core/cache/prefix_tree.h"

#include <algorithm>
#include <cassert>

namespace weir::core {

prefix_tree::prefix_tree(std::uint32_t pages)
    : ids_(std::make_unique_for_overwrite<token_id[]>(std::size_t{pages} * page_tokens)),
      by_name_(pages),
      by_before_(pages) {
  nodes_.reserve(pages);
  leaves_.reserve(pages);
  landmarks_.reserve(pages);
}

page_id prefix_tree::find(page_name name, page_ids ids) const {
  for (page_id p = by_name_.first(name.lo); p != no_page; p = by_name_.next(p)) {
    if (nodes_[index(p)].name == name && std::ranges::equal(ids_of(p), ids)) return p;
  }
  return no_page;
}

prefix_tree::likeness prefix_tree::closest(page_name before, std::span<const token_id> ids) const {
  likeness best;
  int looked_at = 0;
  for (page_id p = by_before_.first(before.lo); p != no_page; p = by_before_.next(p)) {
    if (++looked_at > siblings_looked_at) break;
    if (nodes_[index(p)].before != before) continue;
    const auto mine = ids_of(p);
    const auto agreed = static_cast<std::uint32_t>(std::ranges::mismatch(mine, ids).in1 - mine.begin());
    if (agreed > best.equal) best = {p, agreed};
  }
  return best;
}

void prefix_tree::insert(page_id p, page_id parent, page_name before, page_name name, page_ids ids) {
  assert(!holds(p) && find(name, ids) == no_page);
  if (index(p) >= nodes_.size()) nodes_.resize(index(p) + 1);
  node& n = nodes_[index(p)];
  n = {.name = name, .before = before, .parent = parent, .held = true, .busy = true};
  std::ranges::copy(ids, ids_.get() + index(p) * page_tokens);
  by_name_.add(name.lo, p);
  by_before_.add(before.lo, p);
  ++size_;
  n.depth = parent == no_page ? 1 : nodes_[index(parent)].depth + 1;
  if (is_landmark(n)) {
    n.mark = static_cast<std::uint32_t>(landmarks_.size());
    landmarks_.push_back({name.hi, p});
    ++landmark_changes_;
  }
  if (parent == no_page) return;
  assert(holds(parent) && nodes_[index(parent)].busy && nodes_[index(parent)].name == before);
  ++nodes_[index(parent)].children;
}

void prefix_tree::rest(page_id p) {
  node& n = nodes_[index(p)];
  assert(n.held && n.busy);
  n.busy = false;
  n.rested = ++rests_;
  ++idle_;
  if (n.children == 0) add_leaf(p);
}

void prefix_tree::wake(page_id p) {
  node& n = nodes_[index(p)];
  assert(n.held && !n.busy);
  if (n.children == 0) remove_leaf(p);
  n.busy = true;
  --idle_;
}

page_id prefix_tree::evict() {
  assert(!leaves_.empty());
  const page_id p = leaves_.front();
  remove(p);
  return p;
}

page_id prefix_tree::evict_behind(page_id p) {
  while (nodes_[index(p)].children > 0) p = child_of(p);
  remove(p);
  return p;
}

void prefix_tree::remove(page_id p) {
  remove_leaf(p);
  node& n = nodes_[index(p)];
  n.held = false;
  if (is_landmark(n)) remove_landmark(n);
  by_name_.remove(p);
  by_before_.remove(p);
  --size_;
  --idle_;
  if (n.parent != no_page) {
    node& parent = nodes_[index(n.parent)];
    if (--parent.children == 0 && !parent.busy) add_leaf(n.parent);
  }
}

// One of the nodes behind a node that has some.
page_id prefix_tree::child_of(page_id p) const {
  const node& parent = nodes_[index(p)];
  page_id c = by_before_.first(parent.name.lo);
  while (nodes_[index(c)].parent != p) c = by_before_.next(c);
  return c;
}

void prefix_tree::move(std::span<const page_move> moves) {
  std::vector<page_id> now_at(nodes_.size(), no_page);
  for (const page_move& m : moves) {
    if (!holds(m.from)) continue;
    assert(!holds(m.to) && m.to < m.from);
    node& n = nodes_[index(m.to)] = nodes_[index(m.from)];
    nodes_[index(m.from)].held = false;
    std::ranges::copy(ids_of(m.from), ids_.get() + index(m.to) * page_tokens);
    by_name_.move(m.from, m.to);
    by_before_.move(m.from, m.to);
    if (idle_leaf(n)) leaves_[n.place] = m.to;
    if (is_landmark(n)) landmarks_[n.mark].page = m.to;
    now_at[index(m.from)] = m.to;
  }
  for (node& n : nodes_)
    if (n.held && n.parent != no_page && now_at[index(n.parent)] != no_page)
      n.parent = now_at[index(n.parent)];
}

void prefix_tree::remove_landmark(const node& n) {
  landmarks_[n.mark] = landmarks_.back();
  nodes_[index(landmarks_[n.mark].page)].mark = n.mark;
  landmarks_.pop_back();
  ++landmark_changes_;
}

void prefix_tree::put(std::size_t place, page_id p) {
  leaves_[place] = p;
  nodes_[index(p)].place = static_cast<std::uint32_t>(place);
}

void prefix_tree::lift(std::size_t place) {
  const page_id p = leaves_[place];
  for (; place > 0 && before(p, leaves_[(place - 1) / 2]); place = (place - 1) / 2) {
    put(place, leaves_[(place - 1) / 2]);
  }
  put(place, p);
}

void prefix_tree::sink(std::size_t place) {
  const page_id p = leaves_[place];
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= leaves_.size()) break;
    if (child + 1 < leaves_.size() && before(leaves_[child + 1], leaves_[child])) ++child;
    if (!before(leaves_[child], p)) break;
    put(place, leaves_[child]);
    place = child;
  }
  put(place, p);
}

void prefix_tree::add_leaf(page_id p) {
  leaves_.push_back(p);
  lift(leaves_.size() - 1);
}

void prefix_tree::remove_leaf(page_id p) {
  const std::size_t place = nodes_[index(p)].place;
  const page_id last = leaves_.back();
  leaves_.pop_back();
  if (last == p) return;
  put(place, last);
  lift(place);
  sink(nodes_[index(last)].place);
}

}  // namespace weir::core
