// experts.h — puts the tensors of mixtures of experts under the names of expert_names.h, one matrix an
// expert, whatever the files have: a tensor an expert; one of all experts; one whose inputs come first and
// whose gate and up alternate; or blocks and scales of mxfp4 (gpt-oss as published). Bytes are not touched:
// what files have in another order is put in order as it is read.
//
// Thread safety: nobody else may use the checkpoint during a call; what it adds is immutable.
#pragma once

#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/load/checkpoint.h"

namespace weir::core {

// Removes tensors of draft layers, which stand at or behind config.layers(). Returns a sentence about them.
std::vector<std::string> drop_draft_layers(checkpoint& all, const model_config& config);

// Errors: bad_file for a tensor of all experts whose shape or type is wrong, or whose scales are missing;
// not_supported for one that has types of its own. The message names the tensor.
result<void> arrange_experts(checkpoint& all, const model_config& config);

}  // namespace weir::core
