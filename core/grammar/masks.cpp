// The masks of a grammar.
//
// A token is allowed where its bytes keep some reading alive. For a head in the middle of a terminal these
// are the tokens that stay inside the terminal, which the tokenizer remembers (terminal_views.h), and those
// that leave it and go on in what follows, which are found by a walk over what is left of them.
#include <algorithm>

#include "core/grammar/constraint.h"

namespace weir::core::grammar {

// Counts that one token cannot reach do not make another mask.
config_id constraint::near(config_id id) {
  auto& c = configs_[id];
  if (const auto known = c.near.load(std::memory_order_acquire)) return known;
  const std::lock_guard lock(mutex_);
  const auto horizon = std::max(trie().longest(), 1u);
  auto heads = c.heads;
  for (auto& h : heads) {
    if (!h.is_tokens()) h.state = pool_->within(h.state, horizon);
    h.next = stacks_.within(h.next, horizon);
  }
  const auto to = heads == c.heads ? id : intern(std::move(heads), c.may_end);
  configs_[to].near.store(to, std::memory_order_release);
  c.near.store(to, std::memory_order_release);
  return to;
}

const token_mask* constraint::mask(config_id id) {
  if (id == failed) return nullptr;
  id = near(id);
  if (id == failed) return nullptr;
  auto& c = configs_[id];
  const auto checked = [](const token_mask* m) { return m->cost > most_cost ? nullptr : m; };
  if (const auto* known = c.mask.load(std::memory_order_acquire)) return checked(known);
  auto made = std::make_unique<token_mask>(trie().vocab_size());
  for (const auto& h : c.heads) {
    add_head(*made, h);
    if (made->cost > most_cost) break;
  }
  made->finish();
  const std::lock_guard lock(mutex_);
  if (const auto* known = c.mask.load(std::memory_order_relaxed)) return checked(known);
  memo_bytes_.fetch_add(made->bytes(), std::memory_order_relaxed);
  masks_.push_back(std::move(made));
  c.mask.store(masks_.back().get(), std::memory_order_release);
  return checked(masks_.back().get());
}

const token_mask* constraint::mask_known(config_id id) const {
  if (id == failed) return nullptr;
  const auto near = configs_[id].near.load(std::memory_order_acquire);
  const auto* known = near <= failed ? nullptr : configs_[near].mask.load(std::memory_order_acquire);
  return known && known->cost <= most_cost ? known : nullptr;
}

void constraint::add_head(token_mask& out, const head& h) {
  ++out.cost;
  if (h.is_tokens()) {
    out.set(symbols_.token_sets[h.set()]);
    return;
  }
  const auto view = views_->view(*pool_, h.state);
  out.cost += view->cost;
  if (view->inside.listed())
    out.set(view->inside.listed_ids());
  else
    out.set_words(view->inside.words());
  if (view->leave && view->leave->size() == 1) return;  // no token goes on behind the terminal
  config_id behind = dead;
  {
    const std::lock_guard lock(mutex_);
    behind = after(h.next);
  }
  if (behind == failed) {
    out.cost = most_cost + 1;
    return;
  }
  if (configs_[behind].heads.empty()) return;
  if (view->leave) {
    walk(out, *view->leave, behind);
    return;
  }
  byte_set first;
  for (unsigned b = 0; b < 256; ++b) first[b] = step(behind, static_cast<unsigned char>(b)) != dead;
  if (first.none()) return;
  const auto some = views_->leftovers(*pool_, h.state, first);
  out.cost += some->cost;
  if (some->leave) {
    walk(out, *some->leave, behind);
    return;
  }
  config_id whole = dead;
  {
    const std::lock_guard lock(mutex_);
    whole = intern({h}, false);
  }
  walk(out, trie().tree(), whole);
}

void constraint::walk(token_mask& out, const id_tree& tree, config_id from) {
  std::vector<config_id> path(tree.max_depth() + 1, dead);
  path[0] = from;
  for (std::uint32_t i = 1; i < tree.size() && out.cost <= most_cost;) {
    const auto& node = tree[i];
    ++out.cost;
    const auto to = step(path[node.depth - 1], node.byte);
    if (to == failed) out.cost = most_cost + 1;
    if (to <= failed) {
      i = node.end;
      continue;
    }
    out.set(tree.ids(i));
    path[node.depth] = to;
    i = configs_[to].heads.empty() ? node.end : i + 1;
  }
}

token_mask constraint::mask_by_definition(config_id id) {
  token_mask out(trie().vocab_size());
  for (std::uint32_t t = 0; t < trie().vocab_size(); ++t) {
    const auto token = static_cast<token_id>(t);
    if (accept(id, token) > failed) out.set(token);
  }
  out.finish();
  return out;
}

}  // namespace weir::core::grammar
