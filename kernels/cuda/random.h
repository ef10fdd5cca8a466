// random.h — the entry backend::do_fill_random: random weights are made in memory of the device, so that
// large models need neither memory of the host nor an upload.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::cuda {

void fill_random(void* self, void* to, dtype type, std::uint64_t elements, bool norm, std::uint64_t seed);

}  // namespace weir::kernels::cuda
