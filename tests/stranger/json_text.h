// json_text.h — JSON as text, right and wrong: the only place that writes it.
//
// Pure functions of the source of numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/stranger/random.h"

namespace weir::stranger {

struct field {
  std::string name;
  std::string value;  // JSON, or what stands in its place
};

std::string quoted(std::string_view text);  // bytes over 0x7F as they are
std::string object(const std::vector<field>& fields);
std::string number_list(random_source& draw, std::size_t n, std::size_t below);

// A value that a field may not expect: numbers past every range, deep nesting, lone surrogates, huge texts.
std::string odd_value(random_source& draw);

// The object with some of its values, names and commas made wrong.
std::string spoiled_object(random_source& draw, std::vector<field> fields);

}  // namespace weir::stranger
