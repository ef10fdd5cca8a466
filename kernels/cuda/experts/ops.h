// ops.h — the single operations of mixtures of experts.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::cuda {

// Enters the operations into the table.
void fill_experts(backend& table);

}  // namespace weir::kernels::cuda
