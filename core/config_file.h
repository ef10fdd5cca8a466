// config_file.h — the text of a TOML file with every setting of `weir serve`: what --print-config prints.
//
// The text comes from the table in core/config.h. Each setting has its meaning, unit, range and default in
// comments, and a line with the value that it has: what the command line, the environment or --config says,
// else the default. The line of a setting without a value is commented out. A server with this file has the
// settings of the server that printed it.
//
// Thread safety: pure function.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config.h"

namespace weir::core {

// The values that were given to a setting, as they were written; empty: none. A flag has "true" or "false".
using given_values = std::function<std::vector<std::string>(const setting& s)>;

std::string config_file_of(const given_values& given);

}  // namespace weir::core
