// copy.h — the operation `copy` (kernels/ops.h) by one kernel: copies a page of all layers to another page,
// or to pinned memory of the host and back.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/device/device.h"

namespace weir::kernels::cuda {

// Begins the copy on the device's stream and returns.
// REQUIRES: addresses and strides are multiples of 16
void copy_pieces(device& d, const copy& c);

}  // namespace weir::kernels::cuda
