// gguf_model.h — opens a model in a GGUF file, or in several that belong together.
//
// Thread safety: any thread. Errors: bad_file, not_supported; the message names the file.
#pragma once

#include <string>

#include "core/model/load/opened_model.h"

namespace weir::core {

// `path`: the file, or the first of several (NAME-00001-of-0000M.gguf).
result<opened_model> open_gguf(const std::string& path);

}  // namespace weir::core
