// generation_config.h — how a model's makers want it sampled, and which tokens end its text.
//
// Pure function over foreign bytes; plain data.
#pragma once

#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/model/config.h"
#include "core/sample/params.h"

namespace weir::core {

struct generation_config {
  std::vector<token_id> stop_ids;  // generation_config.json's eos_token_id, else config.json's
  token_id bos = -1;               // -1: none
  sampling_params defaults;        // for whatever a request leaves open; do_sample false makes them greedy
};

// What config.json alone says.
generation_config default_generation(const model_config& config);

// generation_config.json on top of it. `what` names the file in errors.
result<generation_config> parse_generation_config(std::string_view text, const model_config& config,
                                                  std::string_view what);

}  // namespace weir::core
