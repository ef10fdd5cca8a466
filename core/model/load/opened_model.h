// opened_model.h — a model whose files are open and whose weights are not read yet. Every container format is
// opened into one.
//
// Thread safety: as of its members.
#pragma once

#include "core/model/config.h"
#include "core/model/generation_config.h"
#include "core/model/load/checkpoint.h"

namespace weir::core {

struct opened_model {
  model_config config;
  generation_config generation;
  checkpoint weights;
  // What the files have and the model leaves out, and what the served context decides, a sentence each.
  std::vector<std::string> notes;
  std::uint32_t whole_context = 0;  // most tokens of a sequence, as the files say; config.context is served
};

// Opens a directory in Hugging Face layout, or a GGUF file. `context`: most tokens of a sequence that are
// served; 0, or more than the files say: as many as they say. Errors: bad_file, not_supported; the message
// names the file.
result<opened_model> open_model(const std::string& path, std::uint32_t context = 0);

}  // namespace weir::core
