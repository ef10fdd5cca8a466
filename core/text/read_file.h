// read_file.h — reads a small file into a string.
//
// Thread safety: any thread.
#pragma once

#include <optional>
#include <string>

#include "core/error.h"

namespace weir::core {

// The content of a file; nullopt if there is no such file. Error: bad_file if it is not a regular file or
// cannot be read.
result<std::optional<std::string>> read_file(const std::string& path);

}  // namespace weir::core
