// constraints.h — fields of a request that constrain its answer, right, wrong and costly.
//
// Pure functions of the source of numbers.
#pragma once

#include <string>
#include <vector>

#include "tests/stranger/json_text.h"
#include "tests/stranger/random.h"

namespace weir::stranger {

// The names that a route has for its fields of constraints.
enum class constraint_names { ours, anthropic };

// One constraint that compiles in no time.
std::vector<field> easy_constraint(random_source& draw, constraint_names);
// One that nobody has asked for before: small, or one that compiles for some tenths of a second.
std::vector<field> fresh_constraint(random_source& draw, bool slow);
// A JSON Schema that asks for as much work or memory as one can.
std::string hostile_schema(random_source& draw);
// A constraint that asks for as much work or memory as one can, a broken constraint, or two constraints.
std::vector<field> hostile_constraint(random_source& draw, constraint_names);

}  // namespace weir::stranger
