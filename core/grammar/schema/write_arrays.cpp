// Arrays as rules.
#include <algorithm>

#include "core/grammar/distinct_texts.h"
#include "core/grammar/schema/writer.h"

namespace weir::core::grammar {
namespace {

constexpr std::uint64_t most_array_states = 4'000;

std::uint32_t longest_prefix(const constraints& c) {
  std::size_t n = 0;
  for (const auto& rule : c.items) n = std::max(n, rule->first.size());
  return static_cast<std::uint32_t>(n);
}

}  // namespace

goal schema_writer::item_goal(const constraints& c, std::uint32_t index) const {
  goal g;
  for (const auto& rule : c.items) {
    if (index < rule->first.size()) {
      g.push_back(rule->first[index]);
    } else if (rule->rest) {
      g.push_back(*rule->rest);
    }
  }
  return g;
}

part_id schema_writer::array(const constraints& c, const goal& g) {
  if (c.min_items > c.max_items) return rules::nothing;
  for (json_node_id v : c.not_values) {
    if (tree_[v].kind != json_kind::array) continue;
    keywords_.relax(v, "an array among the values that are not allowed is not supported");
  }
  std::optional<part_id> items;
  if (c.unique && c.max_items > 1) {
    items = distinct_items(c);
    if (!items)
      keywords_.relax(*c.unique, fmt::format("uniqueItems is not supported but for items that are all one of "
                                             "at most {} scalars",
                                             distinct_texts::most_texts));
  }
  if (!items) items = c.contains.empty() ? items_counted(c, g) : items_with_contains(c, g);
  return rules_.sequence({json_.open('['), *items, json_.close(']')});
}

part_id schema_writer::items_counted(const constraints& c, const goal& g) {
  const std::uint32_t first = longest_prefix(c);
  const part_id item = value_of(item_goal(c, first));
  const part_id next = rules_.sequence({json_.comma(), item});
  part_id behind = rules::nothing;  // what follows when item `first` is due
  if (first > 0) {
    behind = rules_.repeat(next, count_left(c.min_items, first), count_left(c.max_items, first));
    if (count_left(c.max_items, first) == 0) behind = c.min_items <= first ? rules::empty : rules::nothing;
  } else {
    const part_id some =
        c.max_items == 0
            ? rules::nothing
            : rules_.sequence({item, rules_.repeat(next, count_left(std::max(c.min_items, 1u), 1),
                                                   count_left(c.max_items, 1))});
    behind = c.min_items == 0 ? rules_.choice({rules::empty, some}) : some;
  }
  for (std::uint32_t i = first; i-- > 0;) {
    std::vector<part_id> ways;
    if (i < c.max_items) {
      const part_id one = value_of(item_goal(c, i));
      ways.push_back(i > 0 ? rules_.sequence({json_.comma(), one, behind}) : rules_.sequence({one, behind}));
    }
    if (i >= c.min_items) ways.push_back(rules::empty);
    behind = rules_.named(where(g), rules_.choice(ways));
  }
  return behind;
}

// A state has the number of items, as far as it matters, and for each `contains` the number of items that
// satisfy it. Each item is guessed to satisfy it or not. With a maximum, an item that is guessed not to
// satisfy it must really not satisfy it.
part_id schema_writer::items_with_contains(const constraints& c, const goal& g) {
  std::uint64_t items = std::max({longest_prefix(c), c.min_items, 1u});  // 1: the first has no comma
  if (c.max_items != unbounded) items = std::max<std::uint64_t>(items, c.max_items);
  std::vector<std::uint32_t> caps;
  std::uint64_t states = items + 1;
  for (const contains_rule& rule : c.contains) {
    caps.push_back(rule.max != unbounded ? rule.max : rule.min);
    states = states > most_array_states ? states : states * (std::uint64_t{caps.back()} + 1);
    if (rule.min > rule.max) return rules::nothing;
  }
  if (states > most_array_states || c.contains.size() > 4) {
    keywords_.relax(
        c.contains.front().what.front().schema,
        "contains beside counts of items or of other contains that are so large is not supported");
    constraints free = c;
    free.contains.clear();
    return items_counted(free, g);
  }
  const auto kinds = static_cast<std::uint32_t>(c.contains.size());
  // Index of a state: items, then the counts.
  const auto index = [&](std::uint64_t n, const std::vector<std::uint32_t>& counts) {
    for (std::uint32_t k = 0; k < kinds; ++k) n = n * (std::uint64_t{caps[k]} + 1) + counts[k];
    return static_cast<std::size_t>(n);
  };
  std::vector<rule_id> rule(states);
  for (rule_id& r : rule) r = rules_.declare(where(g));
  std::vector<std::uint32_t> counts(kinds, 0);
  for (std::uint64_t n = 0; n <= items; ++n) {
    std::ranges::fill(counts, 0u);
    for (bool more = true; more;) {
      std::vector<part_id> ways;
      bool enough = n >= c.min_items;
      for (std::uint32_t k = 0; k < kinds; ++k) enough = enough && counts[k] >= c.contains[k].min;
      if (enough) ways.push_back(rules::empty);
      for (std::uint32_t guess = 0; guess < (1u << kinds) && n < c.max_items; ++guess) {
        goal item = item_goal(c, static_cast<std::uint32_t>(n));
        std::vector<std::uint32_t> then = counts;
        bool possible = true;
        for (std::uint32_t k = 0; k < kinds; ++k) {
          const contains_rule& what = c.contains[k];
          if (guess >> k & 1) {
            possible = possible && !(what.max != unbounded && counts[k] == what.max);
            then[k] = std::min(counts[k] + 1, caps[k]);
            item.insert(item.end(), what.what.begin(), what.what.end());
          } else if (what.max != unbounded) {
            possible = possible && what.what.size() == 1;
            item.push_back(!what.what.front());
          }
        }
        if (!possible) continue;
        const part_id rest = rules_.call(rule[index(std::min(n + 1, items), then)]);
        const part_id one = value_of(item);
        ways.push_back(n > 0 ? rules_.sequence({json_.comma(), one, rest}) : rules_.sequence({one, rest}));
      }
      rules_.define(rule[index(n, counts)], rules_.choice(ways));
      more = false;
      for (std::uint32_t k = kinds; k-- > 0 && !more;) {
        more = counts[k] < caps[k];
        counts[k] = more ? counts[k] + 1 : 0;
      }
    }
  }
  return rules_.call(rule[index(0, std::vector<std::uint32_t>(kinds, 0))]);
}

}  // namespace weir::core::grammar
