// limits.h — what this device can do at most, measured: reading, and products of each type.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::cuda {

void read(void* self, const void* at, std::uint64_t bytes);
double peak_flops(void* self, dtype weights);

}  // namespace weir::kernels::cuda
