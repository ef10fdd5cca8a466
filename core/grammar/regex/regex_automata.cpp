// States of automata as terms.
#include <cassert>

#include "core/grammar/regex/regex_pool.h"
#include "core/grammar/regex/regex_prints.h"
#include "core/grammar/regex/regex_tables.h"

namespace weir::core::grammar {

regex_id regex_pool::language(std::shared_ptr<const automaton> by, const automaton::state& at,
                              regex_id separator) {
  if (budget_) budget_->burn(1 + by->bytes() / 16);
  hold(*by);
  const auto print = print_of(by->key());
  return state_of({std::move(by), print, separator, at});
}

void regex_pool::hold(const automaton& a) {
  if (tables_->automata.insert(&a).second) count(a.bytes());
}

regex_id regex_pool::state_of(const automaton_state& s) {
  if (auto texts = s.by->few(s.at); !texts.empty()) return literals(std::move(texts));
  node n;
  n.what = kind::state;
  n.nullable = s.by->may_end(s.at);
  n.counted = s.by->counted(s.at);
  print_text text(static_cast<char>(kind::state));
  text.add(s.print).add(nodes_[s.separator].print);
  for (const auto word : s.at) text.add(word);
  n.print = text.done();
  const auto known =
      tables_->by_print.find(n.print.low, [&](regex_id r) { return nodes_[r].print == n.print; });
  if (known != id_table::none) return known;
  for (const auto& set : s.by->firsts(s.at)) n.members.push_back(bytes_of(set));
  if (s.by->next_item(s.at)) {
    assert(!nodes_[s.separator].nullable);
    n.b = s.separator;
    n.depth = static_cast<std::uint16_t>(nodes_[n.b].depth + 2);
    n.members.push_back(n.b);
  }
  n.a = states_.push(s);
  count(sizeof s);
  return intern(std::move(n));
}

regex_id regex_pool::derive_state(regex_id r, unsigned char b) {
  const auto& from = states_[nodes_[r].a];
  auto to = from;
  const auto next = from.by->next(from.at, b);
  if (next) to.at = *next;
  const auto inside = next ? state_of(to) : nothing;
  if (nodes_[r].b == nothing) return inside;
  const auto between = derive(from.separator, b);
  if (between == nothing) return inside;
  to.at = *from.by->next_item(from.at);  // made only now that the separator has begun
  return either_of({inside, concat_of(between, state_of(to))});
}

regex_id regex_pool::cut_state(regex_id r, std::uint32_t horizon) {
  auto s = states_[nodes_[r].a];
  s.at = s.by->within(s.at, horizon);
  return state_of(s);
}

}  // namespace weir::core::grammar
