// sizes.h — the entries of a CUDA backend's table that only compute sizes.
#pragma once

#include "kernels/cuda/device/facts.h"
#include "kernels/ops.h"

namespace weir::kernels::cuda {

// Fills these entries, except decoder_needs_of. They do not use `self`.
void fill_sizes(backend& table, const cuda_facts& facts);

}  // namespace weir::kernels::cuda
