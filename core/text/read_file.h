// read_file.h — a small file as one string. Any thread.
#pragma once

#include <optional>
#include <string>

#include "core/error.h"

namespace weir::core {

// Nothing where there is no such file; an error names it where it cannot be read.
result<std::optional<std::string>> read_file(const std::string& path);

}  // namespace weir::core
