// params.h — how one job wants its tokens chosen. The steps and their order are in core/sample/pipeline.h.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/token.h"

namespace weir::core {

// Defaults are neutral: a field that nobody set changes nothing.
struct sampling_params {
  float temperature = 1.0f;         // [0, 2]; 0 = greedy, ties to the lowest id
  std::uint32_t top_k = 0;          // 0 = off
  float top_p = 1.0f;               // (0, 1]
  float min_p = 0.0f;               // [0, 1]
  float repetition_penalty = 1.0f;  // (0, 2]; prompt and output
  float frequency_penalty = 0.0f;   // [-2, 2]; output only
  float presence_penalty = 0.0f;    // [-2, 2]; output only
  std::uint64_t seed = 0;           // the key of Philox: same seed, same job, same tokens
  std::uint32_t choice = 0;         // of a request's parallel choices: each draws numbers of its own
  std::vector<std::pair<token_id, float>> logit_bias;  // added after the penalties; [-100, 100]
};

}  // namespace weir::core
