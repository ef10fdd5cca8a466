// random.h — the entry backend::do_fill_random: random weights are made in memory of the device, so that
// large models need neither memory of the host nor an upload.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::cuda {

void fill_random(void* self, const matrix& to, std::uint32_t first, std::uint32_t rows, bool norm,
                 std::uint64_t seed);

}  // namespace weir::kernels::cuda
