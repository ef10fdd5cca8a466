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
  std::vector<std::string> notes;  // what the files have and the model leaves out, a sentence each
};

}  // namespace weir::core
