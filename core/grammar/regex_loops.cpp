// What a walk over a vocabulary can take in one piece: loops over characters, and exceptions.
#include <set>

#include "core/grammar/regex_pool.h"
#include "core/grammar/regex_tables.h"

namespace weir::core::grammar {

regex_pool::character_loop regex_pool::loop_over(regex_id r, regex_id characters) {
  while (nodes_[r].what == kind::concat && nodes_[nodes_[r].a].what == kind::concat) r = nodes_[r].a;
  const auto& n = nodes_[r];
  if (n.what != kind::concat || nodes_[n.a].what != kind::repeat || nodes_[n.b].nullable) return {};
  const auto body = nodes_[n.a].a, rest = n.b;
  const character_loop found{true, nodes_[n.a].max};
  const std::lock_guard lock(mutex_);
  const auto remembered = [&](std::uint64_t key, auto holds) {
    const auto [at, is_new] = tables_->loops.try_emplace(key, false);
    if (is_new) {
      const bool so = holds() && !exhausted();
      tables_->loops[key] = so;
      return so;
    }
    return at->second;
  };
  const bool one_a_time = remembered(std::uint64_t{body} << 1, [&] {
    const auto two = concat_of(characters, repeat_of(characters, 1, unbounded));
    return !search_life(both_of({characters, complement_of(body)})) && !search_life(both_of({body, two}));
  });
  const bool ends_it = remembered(std::uint64_t{rest} << 1 | 1, [&] {
    return !search_life(both_of({rest, concat_of(characters, anything)}));
  });
  return one_a_time && ends_it ? found : character_loop{};
}

// A walk over pairs of a term and what the characters are in the middle of. Where it comes to no end, all
// terms at the border of characters are open.
bool regex_pool::open_to(regex_id r, regex_id characters) {
  constexpr std::size_t most_pairs = 128;
  constexpr std::string_view some = "a 0{.";
  for (const char c : some)  // most terms end here
    if (transition(r, static_cast<unsigned char>(c)) == nothing) return false;
  const std::lock_guard lock(mutex_);
  auto& known = tables_->open;
  if (const auto at = known.find(r); at != known.end()) return at->second;
  const auto texts = repeat_of(characters, 0, unbounded);
  std::vector<std::pair<regex_id, regex_id>> pairs{{r, texts}};
  std::set<std::pair<regex_id, regex_id>> seen{pairs[0]};
  bool open = true;
  for (std::size_t i = 0; i < pairs.size() && open; ++i) {
    const auto [term, text] = pairs[i];
    open = !nodes_[term].nullable && pairs.size() <= most_pairs;
    const auto &of_term = classes_of(term), &of_text = classes_of(text);
    std::bitset<65'536> done;
    for (unsigned b = 0; b < 256 && open; ++b) {
      const auto kind = of_term.of[b] * 256u + of_text.of[b];
      if (done[kind]) continue;
      done[kind] = true;
      const auto next = derive(text, static_cast<unsigned char>(b));
      if (next == nothing) continue;
      const std::pair to(derive(term, static_cast<unsigned char>(b)), next);
      open = search_life(to.first);
      if (seen.insert(to).second) pairs.push_back(to);
    }
  }
  known[r] = open;
  if (open)
    for (const auto& [term, text] : pairs)
      if (text == texts) known[term] = true;
  return open;
}

regex_pool::exception regex_pool::exception_of(regex_id r) {
  std::vector<regex_id> behind;
  for (; nodes_[r].what == kind::concat; r = nodes_[r].a) behind.push_back(nodes_[r].b);
  if (nodes_[r].what != kind::both) return {};
  std::vector<regex_id> kept, taken;
  for (const auto m : nodes_[r].members) {
    if (nodes_[m].what == kind::complement)
      taken.push_back(nodes_[m].a);
    else
      kept.push_back(m);
  }
  if (taken.empty() || kept.empty()) return {};
  const std::lock_guard lock(mutex_);
  exception out{true, both_of(std::move(kept)), either_of(std::move(taken))};
  for (; !behind.empty(); behind.pop_back()) out.base = concat_of(out.base, behind.back());
  return out;
}

}  // namespace weir::core::grammar
