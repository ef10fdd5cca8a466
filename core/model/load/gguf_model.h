// gguf_model.h — opens a model in a GGUF file, or in several that belong together.
//
// Thread safety: any thread. Errors: bad_file, not_supported; the message names the file.
#pragma once

#include <string>
#include <vector>

#include "core/model/load/gguf_header.h"
#include "core/model/load/opened_model.h"

namespace weir::core {

// The files of a model, before anything is known of what they describe.
struct gguf_parts {
  std::vector<gguf_header> files;
  tensor_map tensors;  // of all files, by the names there; their bytes are in `files`
};

// `path` as below.
result<gguf_parts> open_gguf_parts(const std::string& path);

// `path`: the file, or the first of several (NAME-00001-of-0000M.gguf).
result<opened_model> open_gguf(const std::string& path);

}  // namespace weir::core
