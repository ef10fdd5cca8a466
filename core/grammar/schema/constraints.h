// constraints.h — what a schema asks of one JSON value, separately for each type of value.
//
// A constraint on one type says nothing about values of another. Two sets can be joined by «and»: a value has
// to satisfy both. «or» gives several sets (normal_form.h).
//
// Thread safety: plain data.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/grammar/regex/regex_pool.h"
#include "core/grammar/schema/decimal.h"
#include "core/grammar/schema/json_tree.h"
#include "core/grammar/schema/value_set.h"

namespace weir::core::grammar {

// Types of values, as bits. A number is an integer where its value is whole.
enum : std::uint8_t {
  type_null = 1,
  type_boolean = 2,
  type_integer = 4,
  type_fraction = 8,  // a number that is not whole
  type_number = type_integer | type_fraction,
  type_string = 16,
  type_array = 32,
  type_object = 64,
  type_any = 127,
};

// A schema that a value has to satisfy, or must not satisfy.
struct literal {
  json_node_id schema = 0;
  bool negated = false;
  literal operator!() const { return {schema, !negated}; }
  auto operator<=>(const literal&) const = default;
};
using goal = std::vector<literal>;  // all of them

struct number_bound {
  decimal at;
  bool exclusive = false;
};

// A pattern or a format that strings have, or must not have.
struct text_rule {
  json_node_id value = 0;  // of the keyword
  bool format = false;     // else a pattern
  bool negated = false;
  auto operator<=>(const text_rule&) const = default;
};

// What one schema says of the items of arrays.
struct item_rule {
  std::vector<literal> first;   // of the first items
  std::optional<literal> rest;  // of the items behind them; unset: anything
};

// At least `min` and at most `max` items satisfy all of `what`.
struct contains_rule {
  goal what;
  std::uint32_t min = 1, max = unbounded;
};

// What one schema says of the members of objects. Members that no part names are free.
struct member_rule {
  std::vector<std::pair<std::string, literal>> declared;   // by name, in the order written
  std::vector<std::pair<json_node_id, literal>> patterns;  // by pattern: the member of patternProperties
  std::optional<literal> others;                           // of all other members
};

// At least one member that no part of `rule` names, or that `pattern` names, satisfies `what`.
struct some_member_rule {
  std::shared_ptr<const member_rule> rule;  // null: `pattern` says which
  json_node_id pattern = 0;                 // a member of patternProperties
  goal what;
};

struct constraints {
  std::uint8_t types = type_any;

  std::optional<number_bound> low, high;
  std::vector<json_node_id> multiples, not_multiples;  // values of multipleOf

  std::uint32_t min_length = 0, max_length = unbounded;  // of strings, in code points
  std::vector<text_rule> texts;

  std::vector<std::shared_ptr<const item_rule>> items;
  std::uint32_t min_items = 0, max_items = unbounded;
  std::vector<contains_rule> contains;
  std::optional<json_node_id> unique;  // the schema that says uniqueItems

  std::vector<std::shared_ptr<const member_rule>> members;
  std::vector<std::string> required;  // in the order in which the schema asks for them
  std::set<std::string> absent;
  std::uint32_t min_members = 0, max_members = unbounded;
  goal names;  // what every member's name satisfies, as a string
  std::vector<some_member_rule> some_members;

  std::shared_ptr<const value_set> values;  // one of these; null: anything
  std::vector<json_node_id> not_values;     // none of these
};

// Adds what `more` asks. Burns the tree's fuel.
void intersect(constraints& into, const constraints& more, const json_tree& tree);

}  // namespace weir::core::grammar
