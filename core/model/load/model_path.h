// model_path.h — says what to do about a path at which there is no model.
//
// Thread safety: pure function; reads the file system.
#pragma once

#include <string>

#include "core/error.h"

namespace weir::core {

// Errors: bad_file for a path at which there is nothing, with the way to get a model where the path looks
// like the name of a repository, and for one file of a model's directory. What is in a directory is not
// judged.
result<void> check_model_path(const std::string& path);

}  // namespace weir::core
