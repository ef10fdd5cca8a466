#include "core/grammar/masks/terminal_views.h"

#include <algorithm>

#include "core/grammar/masks/local_automaton.h"

namespace weir::core::grammar {
namespace {

constexpr std::size_t most_leftovers = 8'192;             // nodes of the tree of a view's leftovers
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

std::shared_ptr<const terminal_view> terminal_views::keep(const regex_pool& pool, const key& k,
                                                          terminal_view v) {
  auto made = std::make_shared<const terminal_view>(std::move(v));
  if (pool.exhausted()) return made;  // other constraints would believe what this pool could not find out
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = known_.try_emplace(k, kept{made, ++uses_});
  if (!is_new) return at->second.view;
  bytes_ += made->bytes();
  if (bytes_ <= max_bytes_) return made;
  // Drops views down to half of the limit, so that this sort is rare.
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
    if (base->leave) return keep(pool, k, make_excepted(pool, state, *base, exception));
  }
  return keep(pool, k, make(pool, state, nullptr));
}

std::shared_ptr<const terminal_view> terminal_views::leftovers(regex_pool& pool, regex_id state,
                                                               const byte_set& first) {
  const key k{pool.print(state), first};
  if (auto known = find(k)) return known;
  return keep(pool, k, make(pool, state, &first));
}

// A walk over the tree of tokens along the terminal's automaton.
terminal_view terminal_views::make(regex_pool& pool, regex_id state, const byte_set* first) const {
  terminal_view out;
  // In a string most tokens are characters of the string's loop; only the others need the walk.
  const auto plain = pool.plain_characters();
  auto loop = plain == regex_pool::nothing ? regex_pool::character_loop{} : pool.loop_over(state, plain);
  if (!loop.found && plain != regex_pool::nothing && pool.open_to(state, plain)) loop = {true, unbounded};
  const auto& tree = loop.found ? trie_->others() : trie_->tree();
  auto inside = loop.found && !first ? trie_->plain_upto(loop.max) : token_mask(trie_->vocab_size());
  std::vector<std::uint32_t> leaves;  // nodes with children at which the terminal may be over
  local_automaton automaton(pool, state);
  const auto step = [&](local_automaton::state at, unsigned char b) {
    ++out.cost;
    return automaton.step(at, b);
  };
  tree.walk(automaton.start(), step, [&](std::uint32_t i, local_automaton::state to) {
    const bool more = tree.has_children(i);
    const bool all = more && !loop.found && automaton.stays(to, tree, i);
    if (!first) inside.set(all ? tree.ids_below(i) : tree.ids(i));
    if (more && automaton.nullable(to)) leaves.push_back(i);
    return !all && !automaton.over(to);
  });
  inside.finish();
  out.inside = std::make_shared<const token_mask>(std::move(inside));
  out.leave = id_tree::below(tree, leaves, first ? most_chosen_leftovers : most_leftovers, first);
  if (out.leave && !first) out.leaves = std::move(leaves);
  out.of_others = loop.found;
  return out;
}

namespace {

// A walk along the texts of an exception, beside the term that has it.
//
// Derivatives of the term itself are costly. They are not needed where the base is a loop over plain
// characters, the exception is finite, and a string of plain characters begins a text of the exception: the
// term is then alive and not over. So the walk looks at the term only behind another character, or behind a
// whole text of the exception.
class exception_walk {
 public:
  using state = local_automaton::state;

  exception_walk(regex_pool& pool, regex_id term, regex_id taken, bool plain_is_alive, std::uint32_t deepest)
      : whole_(pool, term), taken_(pool, taken), plain_is_alive_(plain_is_alive), path_(deepest + 1) {
    path_[0] = {whole_.start(), taken_.start(), 0, true, true, false};
  }

  enum class outcome { elsewhere, dead, alive, over };  // elsewhere: along no text of the exception
  // What the term is after byte `b`, at a node whose parent was alive or over.
  outcome step(std::uint32_t depth, unsigned char b) {
    const auto& at = path_[depth - 1];
    const auto next = taken_.step(at.taken, b);
    if (!at.behind && next == local_automaton::dead) return outcome::elsewhere;
    auto& here = path_[depth];
    const bool plain = at.plain && b >= 0x20 && b < 0x7F && b != '"' && b != '\\';
    here = {local_automaton::dead, next, b, false, plain, at.behind || taken_.nullable(next)};
    if (plain_is_alive_ && !at.behind && plain) return outcome::alive;
    here.whole = whole_.step(whole_at(depth - 1), b);
    here.known = true;
    if (here.whole == local_automaton::dead) return outcome::dead;
    return whole_.nullable(here.whole) ? outcome::over : outcome::alive;
  }

 private:
  struct place {
    state whole = local_automaton::dead, taken = local_automaton::dead;
    unsigned char byte = 0;
    bool known = true;    // `whole` is set
    bool plain = true;    // all bytes so far are plain ASCII characters
    bool behind = false;  // the bytes so far begin with a whole text of the exception
  };

  state whole_at(std::uint32_t depth) {
    auto from = depth;
    while (!path_[from].known) --from;
    for (; from < depth; ++from) {
      path_[from + 1].whole = whole_.step(path_[from].whole, path_[from + 1].byte);
      path_[from + 1].known = true;
    }
    return path_[depth].whole;
  }

  local_automaton whole_, taken_;
  const bool plain_is_alive_;
  std::vector<place> path_;
};

}  // namespace

// The view of the base, corrected along the texts of the exception. All nodes behind a whole text of the
// exception are looked at.
terminal_view terminal_views::make_excepted(regex_pool& pool, regex_id state, const terminal_view& base,
                                            const regex_pool::exception& exception) const {
  using outcome = exception_walk::outcome;
  terminal_view out;
  auto inside = *base.inside;
  out.of_others = base.of_others;
  const auto plain = pool.plain_characters();
  const auto loop =
      plain == regex_pool::nothing ? regex_pool::character_loop{} : pool.loop_over(exception.base, plain);
  const bool plain_is_alive = loop.found && loop.max == unbounded && pool.finite(exception.taken);
  exception_walk along(pool, state, exception.taken, plain_is_alive, trie_->tree().max_depth());
  struct spot {
    std::uint32_t depth = 0;
    outcome what = outcome::elsewhere;
    bool operator==(const spot&) const = default;
  };
  const auto step = [&](const spot& at, unsigned char b) {
    ++out.cost;
    const spot to{at.depth + 1, along.step(at.depth + 1, b)};
    return to.what == outcome::elsewhere ? spot{} : to;
  };
  const auto walk = [&](const id_tree& tree, auto visit) {
    tree.walk(spot{0, outcome::alive}, step, [&](std::uint32_t i, const spot& at) {
      visit(i, at.what);
      return at.what != outcome::dead;
    });
  };
  const auto& tree = trie_->tree();
  walk(tree, [&](std::uint32_t i, outcome what) {
    if (what == outcome::dead) inside.unset(tree.ids_below(i));
  });
  inside.finish();
  out.inside = std::make_shared<const token_mask>(std::move(inside));
  const auto& leaf_tree = base.of_others ? trie_->others() : tree;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> gone;  // ranges of nodes, in order
  walk(leaf_tree, [&](std::uint32_t i, outcome what) {
    if (what == outcome::dead) gone.emplace_back(i, leaf_tree[i].end);
    if (what == outcome::alive) gone.emplace_back(i, i + 1);
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
