// evaluation.h — which members and items a schema speaks of, for unevaluatedProperties and unevaluatedItems.
//
// A schema speaks of what it names itself, and of what the schemas name that hold for the same value because
// of it: those of allOf, of anyOf, oneOf and if where they hold, and those that it refers to. In one case of
// the normal form that is known. Opposites speak of nothing.
//
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/grammar/schema/constraints.h"

namespace weir::core::grammar {

// One such keyword in a case, and what its schema speaks of there.
struct evaluation {
  json_node_id keyword = 0;  // its value: a schema for what nobody speaks of
  bool of_items = false;     // else of members
  bool everything = false;   // it speaks of all there is
  bool untold = false;       // it is not known which
  std::vector<std::shared_ptr<const member_rule>> members;
  std::vector<std::shared_ptr<const item_rule>> items;
};

// Bits: indices in a list of evaluations.
using evaluation_set = std::uint64_t;
inline constexpr std::size_t most_evaluations = 64;

// Adds the members and items that the schema `said` evaluates to every evaluation of the set `which`.
void note(std::vector<evaluation>& all, evaluation_set which, const constraints& said);
// Nothing is left for the keyword.
bool speaks_of_all(const evaluation& e);
// Adds what the keyword asks of that which nobody spoke of. REQUIRES: neither untold nor speaks_of_all().
void enforce(constraints& into, const evaluation& e);

}  // namespace weir::core::grammar
