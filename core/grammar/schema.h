// schema.h — JSON Schema as a grammar: drafts 4, 6, 7, 2019-09 and 2020-12.
//
// A constraint generates no value that the schema forbids, and every value that it allows, with these limits:
// members stand in the order in which they are declared, then members that are only required, then others;
// integers have no fraction; numbers, strings and white space are limited as json_text.h says.
//
// Errors: invalid_param. The message names the keyword and says what would pass; `param` is the place in the
// schema as a JSON pointer, "" for the whole.
//
// Thread safety: pure function; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "core/grammar/fuel.h"
#include "core/grammar/json_text.h"
#include "core/grammar/rules.h"

namespace weir::core::grammar {

struct schema_options {
  // Refuse what cannot be enforced exactly. Otherwise it is relaxed to a superset, with a warning.
  bool strict = false;
  json_space space = json_space::bounded;
};

// Work burns `budget`, which throws out_of_fuel; so does write_schema().
result<compiled> compile_schema(std::string_view schema, const schema_options& options = {},
                                fuel* budget = nullptr);

// Writes the schema as a part of rules that also have other parts. The root of the rules is not changed.
result<part_id> write_schema(rules&, std::string_view schema, const schema_options&,
                             std::vector<warning>& warnings, fuel* budget);

}  // namespace weir::core::grammar
