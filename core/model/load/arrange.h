// arrange.h — puts a directory's tensors under the names of a plain text model, and their rows in its order.
//
// The text half of a model that also sees has its tensors under a prefix, beside those of other halves. Some
// families turn neighbouring elements of a head; the rows of queries and keys are then read in an order in
// which element i turns with i + half, which gives the same scores.
//
// Thread safety: pure functions of their arguments.
#pragma once

#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/load/checkpoint.h"

namespace weir::core {

// Takes the prefix off, and removes tensors of other halves. Returns a sentence for each kind of tensor that
// was removed. Error: bad_file for two tensors of one name.
result<std::vector<std::string>> strip_wrapper(checkpoint& all, const family& f);

// Errors: those of checkpoint::pair_rows().
result<void> order_heads(checkpoint& all, const model_config& config);

}  // namespace weir::core
