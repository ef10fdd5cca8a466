// gguf_header.h — opens a GGUF file and reads its keys and its table of tensors.
//
// Thread safety: any thread. Errors: bad_file, not_supported; the message names the file.
#pragma once

#include <string>

#include "core/model/load/gguf.h"
#include "core/model/load/opened_file.h"

namespace weir::core {

// Whether a model's path is a GGUF file: by its name, or because it is a file and no directory.
bool is_gguf_path(const std::string& path) noexcept;

// A file and its content, which refers to the file's bytes.
struct gguf_header {
  opened_file file;
  gguf_file content;
};
// Opens one file. Where a model has several files, the first one has its keys.
result<gguf_header> open_gguf_header(const std::string& path);

}  // namespace weir::core
