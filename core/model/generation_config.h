// generation_config.h — a model's default sampling parameters, and the tokens that end its output.
//
// Thread safety: pure functions and plain data; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/model/config.h"
#include "core/sample/params.h"

namespace weir::core {

struct generation_config {
  std::vector<token_id> stop_ids;  // eos_token_id of generation_config.json, or else of config.json
  token_id bos = -1;               // -1: none
  sampling_params defaults;        // for parameters that a request does not set; greedy if do_sample is false
};

// The values for a model that has only a config.json.
generation_config default_generation(const model_config& config);

// The values for a model that has a generation_config.json with this content; keys that it lacks are taken
// from `config`. `what`: name of the file, for errors. Error: bad_file.
result<generation_config> parse_generation_config(std::string_view text, const model_config& config,
                                                  std::string_view what);

}  // namespace weir::core
