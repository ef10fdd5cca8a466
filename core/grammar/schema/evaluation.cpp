#include "core/grammar/schema/evaluation.h"

#include <algorithm>

namespace weir::core::grammar {

void note(std::vector<evaluation>& all, evaluation_set which, const constraints& said) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!(which >> i & 1)) continue;
    evaluation& e = all[i];
    if (e.of_items) {
      e.items.insert(e.items.end(), said.items.begin(), said.items.end());
      e.untold = e.untold || !said.contains.empty();  // an item that satisfies `contains` counts as spoken of
    } else {
      e.members.insert(e.members.end(), said.members.begin(), said.members.end());
    }
  }
}

bool speaks_of_all(const evaluation& e) {
  return e.everything ||
         std::ranges::any_of(e.members, [](const auto& rule) { return rule->others.has_value(); }) ||
         std::ranges::any_of(e.items, [](const auto& rule) { return rule->rest.has_value(); });
}

namespace {

void enforce_members(constraints& into, const evaluation& e) {
  auto rule = std::make_shared<member_rule>();
  for (const auto& m : e.members) {  // adds no demand: what these rules ask holds anyway
    rule->declared.insert(rule->declared.end(), m->declared.begin(), m->declared.end());
    rule->patterns.insert(rule->patterns.end(), m->patterns.begin(), m->patterns.end());
  }
  rule->others = literal{e.keyword};
  into.members.push_back(std::move(rule));
}

void enforce_items(constraints& into, const evaluation& e) {
  auto rule = std::make_shared<item_rule>();
  for (const auto& i : e.items)
    if (i->first.size() > rule->first.size()) rule->first = i->first;
  rule->rest = literal{e.keyword};
  into.items.push_back(std::move(rule));
}

}  // namespace

void enforce(constraints& into, const evaluation& e) {
  if (e.of_items)
    enforce_items(into, e);
  else
    enforce_members(into, e);
}

}  // namespace weir::core::grammar
