// evaluation.h — which members and items a schema speaks of, for unevaluatedProperties and unevaluatedItems.
//
// A schema speaks of what its own keywords name. It also speaks of what the schemas name that it applies to
// the same value: those of allOf, those of anyOf, oneOf and if that hold, and those that it refers to. In one
// case of the normal form it is known which schemas hold. Opposites speak of nothing.
//
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/grammar/schema/constraints.h"

namespace weir::core::grammar {

// One unevaluatedProperties or unevaluatedItems in a case, and what its schema speaks of in that case.
struct evaluation {
  json_node_id keyword = 0;  // its value: a schema for what is not spoken of
  bool of_items = false;     // else of members
  bool everything = false;   // the schema speaks of all members, or of all items
  bool untold = false;       // it is not known what the schema speaks of
  std::vector<std::shared_ptr<const member_rule>> members;
  std::vector<std::shared_ptr<const item_rule>> items;
};

// Bits: indices in a list of evaluations.
using evaluation_set = std::uint64_t;
inline constexpr std::size_t most_evaluations = 64;

// Adds the members and items that the schema `said` evaluates to every evaluation of the set `which`.
void note(std::vector<evaluation>& all, evaluation_set which, const constraints& said);
// Whether nothing is left for the keyword.
bool speaks_of_all(const evaluation& e);
// Adds what the keyword asks of the members or items that its schema does not speak of. REQUIRES: neither
// untold nor speaks_of_all().
void enforce(constraints& into, const evaluation& e);

}  // namespace weir::core::grammar
