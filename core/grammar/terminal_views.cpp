#include "core/grammar/terminal_views.h"

#include <algorithm>

#include "core/grammar/local_automaton.h"

namespace weir::core::grammar {
namespace {

constexpr std::size_t most_leftovers = 8'192;             // nodes that a view's leftovers are made of
constexpr std::size_t most_chosen_leftovers = 2'000'000;  // the same for certain first bytes

}  // namespace

terminal_views::terminal_views(std::shared_ptr<const token_trie> trie, std::size_t max_bytes)
    : trie_(std::move(trie)), max_bytes_(max_bytes) {}

std::shared_ptr<const terminal_view> terminal_views::find(const key& k) {
  const std::lock_guard lock(mutex_);
  const auto at = known_.find(k);
  if (at == known_.end()) return nullptr;
  at->second.used = ++uses_;
  return at->second.view;
}

std::shared_ptr<const terminal_view> terminal_views::keep(const key& k, terminal_view v) {
  auto made = std::make_shared<const terminal_view>(std::move(v));
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = known_.try_emplace(k, kept{made, ++uses_});
  if (!is_new) return at->second.view;
  bytes_ += made->bytes();
  if (bytes_ <= max_bytes_) return made;
  // Half of them go, so that the search for the oldest is rare.
  std::vector<std::pair<std::uint64_t, key>> by_use;
  for (const auto& [name, x] : known_) by_use.emplace_back(x.used, name);
  std::sort(by_use.begin(), by_use.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  for (const auto& [_, name] : by_use) {
    if (bytes_ <= max_bytes_ / 2 || name == k) continue;
    const auto gone = known_.find(name);
    bytes_ -= gone->second.view->bytes();
    known_.erase(gone);
  }
  return made;
}

std::shared_ptr<const terminal_view> terminal_views::view(regex_pool& pool, regex_id state) {
  const key k{pool.print(state), {}};
  if (auto known = find(k)) return known;
  const auto exception = pool.exception_of(state);
  if (exception.found && !pool.nullable(exception.taken)) {
    const auto base = view(pool, exception.base);  // which begins with no exception: the recursion ends there
    if (base->leave) return keep(k, make_excepted(pool, state, *base, exception.taken));
  }
  return keep(k, make(pool, state, nullptr));
}

std::shared_ptr<const terminal_view> terminal_views::leftovers(regex_pool& pool, regex_id state,
                                                               const byte_set& first) {
  const key k{pool.print(state), first};
  if (auto known = find(k)) return known;
  return keep(k, make(pool, state, &first));
}

// A walk over the tree of tokens along the terminal's automaton.
terminal_view terminal_views::make(regex_pool& pool, regex_id state, const byte_set* first) const {
  terminal_view out;
  // In a string most tokens are characters of the string's loop; only the others need the walk.
  const auto plain = pool.plain_characters();
  auto loop = plain == regex_pool::nothing ? regex_pool::character_loop{} : pool.loop_over(state, plain);
  if (!loop.found && plain != regex_pool::nothing && pool.open_to(state, plain)) loop = {true, unbounded};
  const auto& tree = loop.found ? trie_->others() : trie_->tree();
  out.inside = loop.found && !first ? trie_->plain_upto(loop.max) : token_mask(trie_->vocab_size());
  std::vector<std::uint32_t> leaves;  // nodes at which the terminal may be over, with some below them
  local_automaton automaton(pool, state);
  std::vector<local_automaton::state> path(tree.max_depth() + 1, local_automaton::dead);
  path[0] = automaton.start();
  std::uint32_t i = 1;
  while (i < tree.size()) {
    const auto& node = tree[i];
    ++out.cost;
    const auto to = automaton.step(path[node.depth - 1], node.byte);
    if (to == local_automaton::dead) {
      i = node.end;
      continue;
    }
    if (!first) out.inside.set(tree.ids(i));
    if (automaton.nullable(to) && tree.has_children(i)) leaves.push_back(i);
    path[node.depth] = to;
    i = automaton.over(to) ? node.end : i + 1;
  }
  out.inside.finish();
  out.leave = id_tree::below(tree, leaves, first ? most_chosen_leftovers : most_leftovers, first);
  if (out.leave && !first) out.leaves = std::move(leaves);
  out.of_others = loop.found;
  return out;
}

// The view of the base, but for what lies along the texts of the exception. Where such a text is over, all
// that goes on behind it is looked at.
terminal_view terminal_views::make_excepted(regex_pool& pool, regex_id state, const terminal_view& base,
                                            regex_id taken) const {
  terminal_view out;
  out.inside = base.inside;
  out.of_others = base.of_others;
  struct place {
    local_automaton::state state, taken;
    bool over;  // a text of the exception has been over
  };
  local_automaton whole(pool, state), exception(pool, taken);
  std::vector<place> path(trie_->tree().max_depth() + 1);
  path[0] = {whole.start(), exception.start(), false};
  const auto walk = [&](const id_tree& tree, auto dead, auto alive) {
    for (std::uint32_t i = 1; i < tree.size();) {
      const auto& node = tree[i];
      const auto& at = path[node.depth - 1];
      ++out.cost;
      const auto next = exception.step(at.taken, node.byte);
      if (!at.over && next == local_automaton::dead) {
        i = node.end;
        continue;
      }
      const auto to = whole.step(at.state, node.byte);
      if (to == local_automaton::dead) {
        dead(i);
        i = node.end;
        continue;
      }
      alive(i, to);
      path[node.depth] = {to, next, at.over || exception.nullable(next)};
      ++i;
    }
  };
  const auto& tree = trie_->tree();
  walk(
      tree, [&](std::uint32_t i) { out.inside.unset(tree.ids_below(i)); }, [](std::uint32_t, local_automaton::state) {});
  out.inside.finish();
  const auto& leaf_tree = base.of_others ? trie_->others() : tree;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> gone;  // ranges of nodes, in order
  walk(
      leaf_tree, [&](std::uint32_t i) { gone.emplace_back(i, leaf_tree[i].end); },
      [&](std::uint32_t i, local_automaton::state to) {
        if (!whole.nullable(to)) gone.emplace_back(i, i + 1);
      });
  auto range = gone.begin();
  for (const auto leaf : base.leaves) {
    while (range != gone.end() && range->second <= leaf) ++range;
    if (range == gone.end() || leaf < range->first) out.leaves.push_back(leaf);
  }
  out.leave = id_tree::below(leaf_tree, out.leaves, most_leftovers);
  return out;
}

}  // namespace weir::core::grammar
