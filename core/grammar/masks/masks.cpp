// The masks of a grammar.
//
// A token is allowed where its bytes keep some reading alive. A head in the middle of a terminal allows two
// kinds of tokens. Tokens that stay inside the terminal are remembered for the tokenizer (terminal_views.h).
// Tokens that leave the terminal and go on behind it are found by a walk over the rest of their bytes.
#include <algorithm>

#include "core/grammar/constraint.h"

namespace weir::core::grammar {

// The parse with the same mask whose counts are cut to what one token can reach.
parse_id constraint::near(parse_id id) {
  auto& c = parses_[id];
  if (const auto known = c.near.load(std::memory_order_acquire)) return known;
  const std::lock_guard lock(mutex_);
  const auto horizon = std::max(trie().longest(), 1u);
  auto heads = c.heads;
  for (auto& h : heads) {
    if (!h.is_tokens()) h.state = pool_->within(h.state, horizon);
    h.next = stacks_.within(h.next, horizon);
  }
  const auto to = heads == c.heads ? id : intern(std::move(heads), c.may_end);
  parses_[to].near.store(to, std::memory_order_release);
  c.near.store(to, std::memory_order_release);
  return to;
}

const token_mask* constraint::mask(parse_id id) {
  if (id == failed) return nullptr;
  id = near(id);
  if (id == failed) return nullptr;
  auto& c = parses_[id];
  const auto checked = [](const token_mask* m) { return m->cost > most_cost ? nullptr : m; };
  if (const auto* known = c.mask.load(std::memory_order_acquire)) return checked(known);
  auto made = std::make_unique<token_mask>(trie().vocab_size());
  for (const auto& h : c.heads) {
    add_head(*made, h);
    if (made->cost > most_cost) break;
  }
  made->finish();
  const std::lock_guard lock(mutex_);
  if (pool_->exhausted()) {  // what was found is worth nothing
    over_limit();
    made->cost = most_cost + 1;
  }
  if (const auto* known = c.mask.load(std::memory_order_relaxed)) return checked(known);
  auto bytes = made->bytes();
  if (const auto* shared = made->shared(); shared && shared_masks_.insert(shared).second)
    bytes += shared->bytes();
  memo_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  masks_.push_back(std::move(made));
  c.mask.store(masks_.back().get(), std::memory_order_release);
  return checked(masks_.back().get());
}

const token_mask* constraint::mask_known(parse_id id) const {
  if (id == failed) return nullptr;
  const auto near = parses_[id].near.load(std::memory_order_acquire);
  const auto* known = near <= failed ? nullptr : parses_[near].mask.load(std::memory_order_acquire);
  return known && known->cost <= most_cost ? known : nullptr;
}

void constraint::add_head(token_mask& out, const head& h) {
  ++out.cost;
  if (h.is_tokens()) {
    out.set(symbols_.token_sets[h.set()]);
    return;
  }
  if (add_fixed(out, h.state)) return;
  const auto view = views_->view(*pool_, h.state);
  out.cost += view->cost;
  out.set_all(view->inside);
  if (view->leave && view->leave->size() == 1) return;  // no token goes on behind the terminal
  parse_id behind = dead;
  {
    const std::lock_guard lock(mutex_);
    behind = after(h.next);
  }
  if (behind == failed) {
    out.cost = most_cost + 1;
    return;
  }
  if (parses_[behind].heads.empty()) return;
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
  parse_id whole = dead;
  {
    const std::lock_guard lock(mutex_);
    whole = intern({h}, false);
  }
  walk(out, trie().tree(), whole);
}

// Sets the tokens along the bytes with which every text of a terminal begins. False: other tokens go on
// behind these bytes. Most names and constants need no other tokens.
bool constraint::add_fixed(token_mask& out, regex_id state) const {
  const auto& tree = trie().tree();
  std::optional<std::uint32_t> at = 0;
  pool_->each_fixed_byte(state, [&](unsigned char b) {
    ++out.cost;
    at = tree.child(*at, b);
    if (at) out.set(tree.ids(*at));
    return at.has_value();
  });
  return !at || !tree.has_children(*at);
}

void constraint::walk(token_mask& out, const id_tree& tree, parse_id from) {
  struct spot {  // a parse, and its row if it has one
    parse_id at = dead;
    const std::uint8_t* class_of = nullptr;
    const std::atomic<parse_id>* row = nullptr;
    bool operator==(const spot& o) const { return at == o.at; }
  };
  const auto spot_of = [&](parse_id c) {
    const auto* row = parses_[c].row.load(std::memory_order_acquire);
    return spot{c, row ? parses_[c].classes->of.data() : nullptr, row};
  };
  const auto next = [&](spot& s, unsigned char b) {
    if (++out.cost > most_cost) return spot{};
    auto to = s.row ? s.row[s.class_of[b]].load(std::memory_order_acquire) : unknown;
    if (to == unknown) {
      to = step(s.at, b);
      s = spot_of(s.at);
    }
    if (to == failed) out.cost = most_cost + 1;
    return to <= failed ? spot{} : spot_of(to);
  };
  tree.walk(spot_of(from), next, [&](std::uint32_t i, const spot& to) {
    out.set(tree.ids(i));
    return !parses_[to.at].heads.empty();
  });
}

token_mask constraint::mask_by_definition(parse_id id) {
  token_mask out(trie().vocab_size());
  for (std::uint32_t t = 0; t < trie().vocab_size(); ++t) {
    const auto token = static_cast<token_id>(t);
    if (accept(id, token) > failed) out.set(token);
  }
  out.finish();
  return out;
}

}  // namespace weir::core::grammar
