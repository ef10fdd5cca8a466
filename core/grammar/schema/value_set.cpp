#include "core/grammar/schema/value_set.h"

#include <algorithm>

namespace weir::core::grammar {

value_set::value_set(const json_tree& tree, std::span<const json_node_id> values) : tree_(tree) {
  for (const json_node_id v : values) {
    if (contains(v)) continue;
    places_.add(tree_.hash(v), v);
    all_.push_back(v);
  }
}

bool value_set::contains(json_node_id value) const {
  const auto same = [&](json_node_id v) { return tree_.equal(v, value); };
  return places_.find(tree_.hash(value), same) != id_table::none;
}

value_set value_set::common(const value_set& other) const {
  std::vector<json_node_id> in;
  std::ranges::copy_if(all_, std::back_inserter(in), [&](json_node_id v) { return other.contains(v); });
  return value_set(tree_, in);
}

bool value_set::meets(const value_set& other) const {
  if (all_.size() > other.all_.size()) return other.meets(*this);
  return std::ranges::any_of(all_, [&](json_node_id v) { return other.contains(v); });
}

}  // namespace weir::core::grammar
