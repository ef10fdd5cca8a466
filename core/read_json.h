// read_json.h — JSON that somebody else wrote: no key twice in an object (some programs read the first of
// them, others the last), no number that a double cannot hold, no deeper and no more of it than was allowed.
// One pass, and another one to name a key that is there twice.
//
// Memory: parsing takes at most 96 bytes for each value and each key, and three for each byte of the text,
// whatever the text says; what is returned takes less.
//
// Pure functions: any thread.
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
  std::size_t depth = 16;          // arrays and objects around one another
  std::size_t values = SIZE_MAX;   // values and keys
};

// A number of the outermost object, as it was written; empty where there is none of this name.
struct written_number {
  std::string_view name;
  std::string text;
};

// One whole JSON text. The error is invalid_param; its param is the key that is there twice, where that is
// why. The value lies in `memory`, and so does what parsing takes.
result<boost::json::value> read_json(std::string_view text, json_bounds most,
                                     written_number* number = nullptr, boost::json::storage_ptr memory = {});

}  // namespace weir::core
