// walk.h — writes a text as a model without taste would: each token is drawn from those that the mask allows.
//
// Thread safety: a walk runs in one thread; several threads may walk one constraint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "core/grammar/constraint.h"

namespace weir::walks {

struct walk_options {
  std::size_t most_steps = 10'000;  // tokens; after them the text is completed
  // Percentage of steps that follow a shortest completion. Uniform draws alone would stay inside the first
  // string that has no length limit.
  unsigned hurry = 0;
  // Bytes. A constraint that holds more is made afresh, as the cache does.
  std::size_t most_bytes = std::size_t{16} << 20;
};

struct walk_result {
  std::string text;
  std::size_t steps = 0;  // tokens
  std::string fault;      // empty: the text came to an end
};

// Faults: a mask that is empty where the text may not end, a token of a mask that is not accepted, no
// completion, a completion that no tokens spell, a constraint that has failed.
walk_result walk(std::shared_ptr<core::grammar::constraint>, const walk_options&, std::mt19937_64& random);

}  // namespace weir::walks
