// special_tokens.h — the special tokens that a model's files name, for a template from elsewhere.
//
// Thread safety: any thread.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "core/error.h"

namespace weir::core {

// The spelling of each special token by its name in a template, such as bos_token. `dir`: a directory or a
// GGUF file. Error: bad_file for a file that cannot be read or is not valid JSON.
result<boost::json::object> special_tokens_of(const std::string& dir);

}  // namespace weir::core
