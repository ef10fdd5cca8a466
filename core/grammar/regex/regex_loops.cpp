// What a walk over a vocabulary can take in one piece: loops over characters, and exceptions.
#include <set>

#include "core/grammar/regex/regex_pool.h"
#include "core/grammar/regex/regex_tables.h"

namespace weir::core::grammar {

// Whether each of the characters is a text of the body, and no string of two or more of them is.
bool regex_pool::loops_over(regex_id body, regex_id characters) {
  const auto [at, is_new] = tables_->loops.try_emplace(std::uint64_t{body} << 1, false);
  if (!is_new) return at->second;
  const auto two = concat_of(characters, repeat_of(characters, 1, unbounded));
  const bool so =
      !search_life(both_of({characters, complement_of(body)})) && !search_life(both_of({body, two}));
  return tables_->loops[std::uint64_t{body} << 1] = so && !exhausted();
}

// Whether no text of `rest` begins with one of the characters.
bool regex_pool::ends_loop(regex_id rest, regex_id characters) {
  const auto [at, is_new] = tables_->loops.try_emplace(std::uint64_t{rest} << 1 | 1, false);
  if (!is_new) return at->second;
  const bool so = !search_life(both_of({rest, concat_of(characters, anything)}));
  return tables_->loops[std::uint64_t{rest} << 1 | 1] = so && !exhausted();
}

regex_pool::character_loop regex_pool::loop_over(regex_id r, regex_id characters) {
  while (nodes_[r].what == kind::concat && nodes_[nodes_[r].a].what == kind::concat) r = nodes_[r].a;
  const auto& n = nodes_[r];
  if (n.what != kind::concat || nodes_[n.a].what != kind::repeat || nodes_[n.b].nullable) return {};
  const std::lock_guard lock(mutex_);
  if (!loops_over(nodes_[n.a].a, characters) || !ends_loop(n.b, characters)) return {};
  return {true, nodes_[n.a].max};
}

// Whether the term begins with one or more alternatives and a part behind them, where an alternative begins
// with an endless loop over the characters, and the part is never empty and begins with none of the
// characters. A pattern that is searched for is such a term.
bool regex_pool::goes_round(regex_id r, regex_id characters) {
  while (nodes_[r].what == kind::concat &&
         (nodes_[nodes_[r].b].nullable || !ends_loop(nodes_[r].b, characters)))
    r = nodes_[r].a;
  if (nodes_[r].what != kind::concat) return false;
  const auto inside = nodes_[r].a;
  const auto loops = [&](regex_id reading) {
    auto x = reading;
    while (nodes_[x].what == kind::concat) x = nodes_[x].a;
    const auto& n = nodes_[x];
    return n.what == kind::repeat && n.min == 0 && n.max == unbounded && loops_over(n.a, characters) &&
           search_life(reading);
  };
  if (nodes_[inside].what != kind::either) return loops(inside);
  const auto readings = nodes_[inside].members;
  return std::any_of(readings.begin(), readings.end(), loops);
}

regex_pool::byte_loop_found regex_pool::byte_loop(regex_id r) {
  while (nodes_[r].what == kind::concat && nodes_[nodes_[r].a].what == kind::concat) r = nodes_[r].a;
  const auto& n = nodes_[r];
  if (n.what != kind::concat || nodes_[n.a].what != kind::repeat || nodes_[n.b].nullable) return {};
  const auto& body = nodes_[nodes_[n.a].a];
  byte_loop_found out;
  if (body.what == kind::bytes) out.bytes = sets_[body.a];
  if (body.what == kind::either && !body.nullable)
    for (const auto m : body.members)
      if (nodes_[m].what == kind::bytes) out.bytes |= sets_[nodes_[m].a];
  // Leaves out the bytes with which the part behind the loop can begin: such a byte may end the loop.
  const auto& rest = classes(n.b);
  for (std::size_t b = 0; b < 256 && out.bytes.any(); ++b)
    if (out.bytes[b] && transition(n.b, rest.representative[rest.of[b]]) != nothing) out.bytes.reset(b);
  if (out.bytes.any()) out.max = nodes_[n.a].max;
  return out;
}

// Walks over pairs of a term and the language of the characters that follow. Within a character, that
// language begins with the rest of the character. If no pair has a term that may be over or is dead, the
// terms of all pairs between two characters are open.
bool regex_pool::open_to(regex_id r, regex_id characters) {
  constexpr std::size_t most_pairs = 128;
  constexpr std::string_view some = "a 0{.";
  for (const char c : some)  // decides most terms
    if (transition(r, static_cast<unsigned char>(c)) == nothing) return false;
  const std::lock_guard lock(mutex_);
  auto& known = tables_->open;
  if (const auto at = known.find(r); at != known.end()) return at->second;
  if (goes_round(r, characters)) return known[r] = true;
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
      open = search_life(to.first) && !exhausted();
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
