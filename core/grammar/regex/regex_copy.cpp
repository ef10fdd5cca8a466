// Copies some terms of a pool to a new pool.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/grammar/regex/regex_pool.h"

namespace weir::core::grammar {

// The parts of a term have smaller ids than the term, so they come before it.
std::vector<regex_id> regex_pool::reached_from(std::span<const regex_id> terms) const {
  std::vector<regex_id> open(terms.begin(), terms.end()), out;
  std::unordered_set<regex_id> seen(terms.begin(), terms.end());
  while (!open.empty()) {
    const auto r = open.back();
    open.pop_back();
    out.push_back(r);
    const auto add = [&](regex_id part) {
      if (seen.insert(part).second) open.push_back(part);
    };
    const auto& n = nodes_[r];
    for (const auto m : n.members) add(m);
    if (n.what == kind::concat || n.what == kind::complement || n.what == kind::repeat) add(n.a);
    if (n.what == kind::concat) add(n.b);
    if (n.what == kind::state) add(states_[n.a].separator);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool regex_pool::finite(regex_id r) const {
  const std::array one{r};
  const auto parts = reached_from(one);
  return std::none_of(parts.begin(), parts.end(), [&](regex_id x) {
    const auto& n = nodes_[x];
    if (n.what == kind::state) return !states_[n.a].by->finite();
    return n.what == kind::complement || (n.what == kind::repeat && n.max == unbounded);
  });
}

std::shared_ptr<regex_pool> regex_pool::copy(std::span<regex_id> terms) const {
  auto out = std::make_shared<regex_pool>(max_nodes_);
  std::vector<regex_id> wanted(terms.begin(), terms.end());
  wanted.push_back(plain_characters_);
  std::unordered_map<regex_id, regex_id> as;
  for (const auto r : reached_from(wanted)) {
    const auto& from = nodes_[r];
    node n;
    n.what = from.what;
    n.nullable = from.nullable, n.plain = from.plain, n.counted = from.counted;
    n.depth = from.depth;
    n.min = from.min, n.max = from.max;
    n.print = from.print;
    for (const auto m : from.members) n.members.push_back(as.at(m));
    if (n.what == kind::bytes) n.a = out->sets_.push(sets_[from.a]);
    if (n.what == kind::concat || n.what == kind::complement || n.what == kind::repeat) n.a = as.at(from.a);
    if (n.what == kind::concat) n.b = as.at(from.b);
    if (n.what == kind::state) {
      auto state = states_[from.a];
      state.separator = as.at(state.separator);
      out->hold(*state.by);
      n.a = out->states_.push(std::move(state));
      if (from.b != nothing) n.b = as.at(from.b);
    }
    as[r] = out->intern(std::move(n));
  }
  for (auto& r : terms) r = as.at(r);
  out->plain_characters_ = as.at(plain_characters_);
  return out;
}

}  // namespace weir::core::grammar
