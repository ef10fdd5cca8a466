// sizes.h — the entries of a CUDA backend's table that only compute sizes.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::cuda {

// Fills these entries, except decoder_needs_of. They do not use `self`.
void fill_sizes(backend& table);

}  // namespace weir::kernels::cuda
