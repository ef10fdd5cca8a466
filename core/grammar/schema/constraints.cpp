#include "core/grammar/schema/constraints.h"

#include <algorithm>

namespace weir::core::grammar {
namespace {

template <class T>
void append(std::vector<T>& into, const std::vector<T>& more) {
  into.insert(into.end(), more.begin(), more.end());
}

void intersect_low(std::optional<number_bound>& into, const std::optional<number_bound>& more) {
  if (!more) return;
  if (!into || into->at < more->at || (into->at == more->at && more->exclusive)) into = more;
}

void intersect_high(std::optional<number_bound>& into, const std::optional<number_bound>& more) {
  if (!more) return;
  if (!into || more->at < into->at || (into->at == more->at && more->exclusive)) into = more;
}

void intersect_values(constraints& into, const constraints& more, const json_tree& tree) {
  tree.burn(more.not_values.size() / 16);
  append(into.not_values, more.not_values);
  if (!more.values || into.values == more.values) return;
  into.values =
      into.values ? std::make_shared<const value_set>(into.values->common(*more.values)) : more.values;
}

}  // namespace

void intersect(constraints& into, const constraints& more, const json_tree& tree) {
  tree.burn(1 + more.required.size() * into.required.size() / 16);
  into.types &= more.types;
  intersect_low(into.low, more.low);
  intersect_high(into.high, more.high);
  append(into.multiples, more.multiples);
  append(into.not_multiples, more.not_multiples);
  into.min_length = std::max(into.min_length, more.min_length);
  into.max_length = std::min(into.max_length, more.max_length);
  append(into.texts, more.texts);
  append(into.items, more.items);
  into.min_items = std::max(into.min_items, more.min_items);
  into.max_items = std::min(into.max_items, more.max_items);
  append(into.contains, more.contains);
  if (!into.unique) into.unique = more.unique;
  append(into.members, more.members);
  for (const std::string& n : more.required)
    if (std::ranges::find(into.required, n) == into.required.end()) into.required.push_back(n);
  into.absent.insert(more.absent.begin(), more.absent.end());
  into.min_members = std::max(into.min_members, more.min_members);
  into.max_members = std::min(into.max_members, more.max_members);
  append(into.names, more.names);
  append(into.some_members, more.some_members);
  intersect_values(into, more, tree);
}

}  // namespace weir::core::grammar
