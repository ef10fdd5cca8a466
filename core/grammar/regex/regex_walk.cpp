// The automaton of a regular language: derivatives, and whether a language is empty. Classes of bytes are in
// regex_classes.cpp.
#include <algorithm>
#include <cassert>
#include <deque>

#include "core/grammar/regex/regex_pool.h"
#include "core/grammar/regex/regex_tables.h"

namespace weir::core::grammar {

// ---- derivatives ----

// The recursion is as deep as node::depth says; intern() bounds it.
regex_id regex_pool::derive_new(regex_id r, unsigned char b) {
  if (budget_) budget_->burn();
  ++work_;
  switch (nodes_[r].what) {
    case kind::nothing:
    case kind::empty:
      return nothing;
    case kind::bytes:
      return sets_[nodes_[r].a][b] ? empty : nothing;
    case kind::complement:
      return complement_of(derive(nodes_[r].a, b));
    case kind::state:
      return derive_state(r, b);
    case kind::repeat: {
      const auto& n = nodes_[r];
      const auto inside = derive(n.a, b);
      if (inside == nothing) return nothing;
      const auto max = n.max == unbounded ? unbounded : n.max - 1;
      return concat_of(inside, repeat_of(n.a, n.min == 0 ? 0 : n.min - 1, max));
    }
    case kind::either:
    case kind::both: {
      const bool is_either = nodes_[r].what == kind::either;
      std::vector<regex_id> out;
      for (const auto m : nodes_[r].members) {
        const auto d = derive(m, b);
        if (is_either && d == nothing) continue;
        if (!is_either && d == nothing) return nothing;
        out.push_back(d);
      }
      return is_either ? either_of(std::move(out)) : both_of(std::move(out));
    }
    case kind::concat: {
      std::vector<regex_id> out;
      for (;;) {
        const auto [a, rest] = std::pair(nodes_[r].a, nodes_[r].b);
        out.push_back(concat_of(derive(a, b), rest));
        if (!nodes_[a].nullable) break;
        r = rest;
        if (nodes_[r].what == kind::concat) continue;
        out.push_back(derive(r, b));
        break;
      }
      return out.size() == 1 ? out[0] : either_of(std::move(out));
    }
  }
  return nothing;
}

regex_id regex_pool::derive(regex_id r, unsigned char b) {
  const auto what = nodes_[r].what;
  if (what == kind::nothing || what == kind::empty || what == kind::bytes || what == kind::concat)
    return derive_new(r, b);  // quick, or its parts are remembered
  auto& to = row_of(r)[classes_of(r).of[b]];
  auto d = to.load(std::memory_order_relaxed);
  if (d == unknown) {
    d = derive_new(r, b);
    to.store(d, std::memory_order_release);
  }
  return d;
}

std::atomic<regex_id>* regex_pool::row_of(regex_id r) {
  auto& n = nodes_[r];
  if (auto* known = n.next.load(std::memory_order_relaxed)) return known;
  const auto size = classes_of(r).representative.size();
  row made(new std::atomic<regex_id>[size]);
  for (std::size_t i = 0; i < size; ++i) made[i].store(unknown, std::memory_order_relaxed);
  count(sizeof(regex_id) * size + 32);
  auto* const out = made.get();
  tables_->rows.push_back(std::move(made));
  n.next.store(out, std::memory_order_release);
  return out;
}

regex_id regex_pool::transition(regex_id r, unsigned char b) {
  const auto& n = nodes_[r];
  const auto* const next = n.next.load(std::memory_order_acquire);
  if (!next) return slow_transition(r, b);
  const auto& partition = partitions_[n.partition.load(std::memory_order_acquire) - 1];
  const auto d = next[partition.of[b]].load(std::memory_order_acquire);
  if (d == unknown) return slow_transition(r, b);
  const auto& to = nodes_[d];
  if (to.plain) return d;
  switch (to.alive.load(std::memory_order_relaxed)) {
    case life::live:
      return d;
    case life::dead:
      return nothing;
    default:
      return slow_transition(r, b);
  }
}

regex_id regex_pool::slow_transition(regex_id r, unsigned char b) {
  const std::lock_guard lock(mutex_);
  auto& to = row_of(r)[classes_of(r).of[b]];
  auto d = to.load(std::memory_order_relaxed);
  if (d == unknown) {
    d = derive_new(r, b);
    to.store(d, std::memory_order_release);
  }
  return search_life(d) ? d : nothing;
}

// ---- emptiness ----

// Over derivatives to the first term that is known to be live. Then every term on the way there is live; if
// there is none, every term that was reached is dead.
//
// There are three searches, each longer than the one before. A short one, breadth first, finds a short text
// beside endless counts. One depth first finds a long text where many short ones lead nowhere. The last one,
// breadth first again, may look at many terms. A term of ambiguous counts can have as many members as the
// text has bytes. So the work of a search is bounded, and not only its terms.
//
// A search that gives up has shown nothing. So the term counts as live, and the pool as exhausted: who trusts
// an answer looks at exhausted() behind it.
bool regex_pool::search_life(regex_id r) {
  if (const auto l = life_of(r); l != life::unknown) {
    remember_life(r, l);
    return l == life::live;
  }
  if (exhausted()) return true;
  if (const auto l = search_breadth(r, search_limit / 200, search_work / 100); l != life::unknown)
    return l == life::live;
  if (const auto l = search_depth(r, search_limit / 20, search_work / 10); l != life::unknown)
    return l == life::live;
  if (const auto l = search_breadth(r, search_limit, search_work); l != life::unknown)
    return l == life::live;
  give_up("the search for a text takes too much");
  return true;
}

regex_pool::life regex_pool::life_of(regex_id r) const {
  const auto& n = nodes_[r];
  if (r == nothing) return life::dead;
  return n.plain || n.nullable ? life::live : n.alive.load(std::memory_order_relaxed);
}

void regex_pool::remember_life(regex_id r, life l) {
  if (!nodes_[r].plain) nodes_[r].alive.store(l, std::memory_order_relaxed);
}

// The term from which a search came to a term; the first one came from itself.
using came_from = std::unordered_map<regex_id, regex_id>;

regex_pool::life regex_pool::all_live(const came_from& from, regex_id x) {
  for (;; x = from.at(x)) {
    remember_life(x, life::live);
    if (from.at(x) == x) return life::live;
  }
}

regex_pool::life regex_pool::all_dead(const came_from& from) {
  if (exhausted()) return life::live;  // terms may be missing
  for (const auto& [x, _] : from) remember_life(x, life::dead);
  return life::dead;
}

regex_pool::life regex_pool::search_breadth(regex_id r, std::size_t most_terms, std::uint64_t most_work) {
  const auto begun = work_;
  came_from from{{r, r}};
  std::deque<regex_id> open{r};
  while (!open.empty()) {
    const auto x = open.front();
    open.pop_front();
    for (const auto b : classes_of(x).representative) {
      const auto d = derive(x, b);
      const auto l = life_of(d);
      if (l == life::live) return remember_life(d, l), all_live(from, x);
      if (l == life::unknown && from.try_emplace(d, x).second) open.push_back(d);
    }
    if (from.size() > most_terms || work_ - begun > most_work) return life::unknown;
  }
  return all_dead(from);
}

regex_pool::life regex_pool::search_depth(regex_id r, std::size_t most_terms, std::uint64_t most_work) {
  struct place {
    regex_id term;
    std::size_t next;  // class of bytes
  };
  const auto begun = work_;
  came_from from{{r, r}};
  std::vector<place> path{{r, 0}};
  while (!path.empty()) {
    if (from.size() > most_terms || work_ - begun > most_work) return life::unknown;
    auto& [x, next] = path.back();
    const auto& bytes = classes_of(x).representative;
    if (next == bytes.size()) {
      path.pop_back();
      continue;
    }
    const auto here = x;
    const auto d = derive(here, bytes[next++]);
    const auto l = life_of(d);
    if (l == life::live) return remember_life(d, l), all_live(from, here);
    if (l == life::unknown && from.try_emplace(d, here).second) path.push_back({d, 0});
  }
  return all_dead(from);
}

bool regex_pool::live(regex_id r) {
  if (nodes_[r].plain) return r != nothing;
  const auto l = nodes_[r].alive.load(std::memory_order_relaxed);
  if (l != life::unknown) return l == life::live;
  const std::lock_guard lock(mutex_);
  return search_life(r);
}

// ---- a shortest text ----

regex_pool::shortest_text regex_pool::shortest(regex_id r, std::size_t max_bytes) {
  shortest_text out;
  const auto rank = [](unsigned char b) {  // letters and digits first
    const bool plain = (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z');
    return plain ? 0 : b >= 0x20 && b < 0x7F ? 1 : 2;
  };
  struct step {
    regex_id from;
    unsigned char by;
  };
  std::unordered_map<regex_id, step> came{{r, {r, 0}}};
  std::vector<regex_id> layer{r};
  const std::lock_guard lock(mutex_);
  if (!search_life(r)) return out;
  for (std::size_t length = 0; length <= max_bytes && !layer.empty(); ++length) {
    for (const auto x : layer) {
      if (!nodes_[x].nullable) continue;
      out.found = true;
      for (auto y = x; y != r; y = came[y].from) out.text.push_back(static_cast<char>(came[y].by));
      std::reverse(out.text.begin(), out.text.end());
      return out;
    }
    std::vector<regex_id> next;
    for (const auto x : layer) {
      const auto& classes = classes_of(x);
      std::vector<unsigned char> by(classes.representative.begin(), classes.representative.end());
      for (std::size_t b = 0; b < 256; ++b) {
        auto& best = by[classes.of[b]];
        if (rank(static_cast<unsigned char>(b)) < rank(best)) best = static_cast<unsigned char>(b);
      }
      std::stable_sort(by.begin(), by.end(), [&](auto p, auto q) { return rank(p) < rank(q); });
      for (const auto b : by) {
        const auto d = derive(x, b);
        if (d != nothing && search_life(d) && came.try_emplace(d, step{x, b}).second) next.push_back(d);
      }
    }
    if (came.size() > search_limit) return out;
    layer = std::move(next);
  }
  return out;
}

// ---- counts above a horizon ----

regex_id regex_pool::within(regex_id r, std::uint32_t horizon) {
  if (!nodes_[r].counted) return r;
  const std::lock_guard lock(mutex_);
  return cut(r, horizon);
}

// Each repetition takes at least one byte. So within `horizon` bytes a minimum above the horizon is not
// reached, and a maximum above it does not end anything.
regex_id regex_pool::cut(regex_id r, std::uint32_t horizon) {
  if (!nodes_[r].counted) return r;
  const auto key = std::uint64_t{horizon} << 32 | r;
  if (const auto known = tables_->cut.find(key); known != tables_->cut.end()) return known->second;
  regex_id out = r;
  const auto what = nodes_[r].what;
  if (what == kind::concat) {  // along the right side without recursion
    std::vector<regex_id> parts;
    auto x = r;
    for (; nodes_[x].what == kind::concat && nodes_[x].counted; x = nodes_[x].b)
      parts.push_back(cut(nodes_[x].a, horizon));
    out = cut(x, horizon);
    while (!parts.empty()) {
      out = concat_of(parts.back(), out);
      parts.pop_back();
    }
  } else if (what == kind::either) {
    std::vector<regex_id> members;
    for (const auto m : nodes_[r].members) members.push_back(cut(m, horizon));
    out = either_of(std::move(members));
  } else if (what == kind::repeat) {
    const auto [a, min, max] = std::tuple(nodes_[r].a, nodes_[r].min, nodes_[r].max);
    const bool ends = max != unbounded && max <= horizon;
    out = repeat_of(cut(a, horizon), std::min(min, horizon + 1), ends ? max : unbounded);
  } else if (what == kind::state) {
    out = cut_state(r, horizon);
  }
  count(48);
  tables_->cut.emplace(key, out);
  return out;
}

}  // namespace weir::core::grammar
