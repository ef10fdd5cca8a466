// limits.h — the entries backend::do_read and backend::peak_flops: the limits of a CUDA device, measured.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::cuda {

void read(void* self, const void* at, std::uint64_t bytes);
double peak_flops(void* self, dtype weights);

}  // namespace weir::kernels::cuda
