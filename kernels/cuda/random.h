// random.h — random weights made where they lie: 16 GB of them need no host memory and no bus.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::cuda {

void fill_random(void* self, void* to, dtype type, std::uint64_t elements, bool norm, std::uint64_t seed);

}  // namespace weir::kernels::cuda
