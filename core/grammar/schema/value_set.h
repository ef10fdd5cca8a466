// value_set.h — values that stand in a schema, each once, and whether a value is among them: enum and const.
//
// Thread safety: immutable; any thread. The tree has to live as long.
#pragma once

#include <span>
#include <vector>

#include "core/grammar/id_table.h"
#include "core/grammar/schema/json_tree.h"

namespace weir::core::grammar {

class value_set {
 public:
  // Burns the tree's fuel, and so does contains().
  value_set(const json_tree& tree, std::span<const json_node_id> values);

  const std::vector<json_node_id>& all() const { return all_; }  // in the order given
  bool empty() const { return all_.empty(); }
  bool contains(json_node_id value) const;
  // The values that are in the other set as well.
  value_set common(const value_set& other) const;
  bool meets(const value_set& other) const;

 private:
  const json_tree& tree_;
  std::vector<json_node_id> all_;
  id_table places_;
};

}  // namespace weir::core::grammar
