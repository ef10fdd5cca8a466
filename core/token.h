// token.h — ids of tokens, and a token with the time at which it was sampled.
#pragma once

#include <cstdint>

#include "core/clock.h"

namespace weir::core {

// Index into a model's vocabulary: 0 to its size - 1. A negative value is never a token.
using token_id = std::int32_t;

// A token, and when it was sampled. Its delivery may come later, because it was withheld for a stop string.
struct token {
  token_id id = 0;
  time_point at{};
};

}  // namespace weir::core
