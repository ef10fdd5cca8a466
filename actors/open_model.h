// open_model.h — a model's name on the command line becomes weights, tokenizer and template, ready for an
// engine.
#pragma once

#include <memory>
#include <string>

#include "actors/messages.h"
#include "core/engine.h"
#include "core/model/load.h"

namespace weir::actors {

struct owner_options;

struct opened_model {
  std::unique_ptr<core::model> weights;  // its KV pages are allocated
  core::engine_config config;
  served_model served;                   // without the way to its owner
};

// What a model is called where nobody named it: random:SHAPE[:DTYPE] by its shape, a directory by its last
// part.
std::string name_of_source(const std::string& source);

// Called on the owner's thread; `backend` is null for the simulated device. Reads files; errors name file and
// field.
core::result<std::unique_ptr<opened_model>> open_model(const model_spec& spec, const owner_options& o,
                                                       std::shared_ptr<const kernels::backend> backend,
                                                       const load_progress& progress);

}  // namespace weir::actors
