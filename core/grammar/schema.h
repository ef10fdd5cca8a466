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

#include <string>
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
  value_notation notation = {};
  bool only_objects = false;  // of the schema's values those that are objects
};

// Work burns `budget`, which throws out_of_fuel; so does write_schema().
result<compiled> compile_schema(std::string_view schema, const schema_options& options = {},
                                fuel* budget = nullptr);

// Writes the schema as a part of rules that also have other parts. The root of the rules is not changed.
result<part_id> write_schema(rules&, std::string_view schema, const schema_options&,
                             std::vector<warning>& warnings, fuel* budget);

// The members of an object that are written one by one, in order, such as the parameters of a call.
struct schema_parameters {
  struct value {
    part_id written = rules::nothing;     // the values in the notation; `texts_apart`: without strings
    regex_id text = regex_pool::nothing;  // `texts_apart`: the strings, as plain text without quotes
  };
  struct member {
    std::string name;
    bool required = false;
    value what;
  };
  struct other {
    regex_id names = regex_pool::nothing;  // in the notation's spelling
    value what;
  };
  std::vector<member> known;
  std::vector<other> others;  // in any number behind the known ones
};

// An object satisfies the schema if its members are those of one of the results. Counts of members are not
// enforced, nor are opposites of additionalProperties. REQUIRES: options.notation is not `quoted`.
result<std::vector<schema_parameters>> write_parameters(rules&, std::string_view schema,
                                                        const schema_options&, bool texts_apart,
                                                        std::vector<warning>& warnings, fuel* budget);

}  // namespace weir::core::grammar
