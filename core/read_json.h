// read_json.h — reads JSON that is not trusted.
//
// These are errors: a key that an object has twice, because some programs read the first one and others the
// last; a number that is too large for a double; more nesting or more values than the caller allows. The text
// is parsed once, and a second time only to name a key that occurs twice.
//
// Parsing takes at most 96 bytes for each value and each key, and three for each byte of the text, whatever
// the text says. The result takes less.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <boost/json/storage_ptr.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace weir::core {

struct json_bounds {
  std::size_t depth = 16;          // most arrays and objects inside one another
  std::size_t values = SIZE_MAX;   // most values and keys
};

// Receives a number of the outermost object as it is spelled in the text.
struct written_number {
  std::string_view name;  // key of the number, set by the caller
  std::string text;       // empty if there is no such number
};

// Parses a whole text. The result is in `memory`, which also serves for parsing. Error: invalid_param; if a
// key occurs twice, `param` is that key.
result<boost::json::value> read_json(std::string_view text, json_bounds most,
                                     written_number* number = nullptr, boost::json::storage_ptr memory = {});

// Values and keys of a value, itself included.
std::size_t values_in(const boost::json::value& v);

}  // namespace weir::core
