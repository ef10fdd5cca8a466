// copy.h — pieces of memory that lie apart, copied by one kernel: a page of all layers, to another page or to
// pinned memory of the host and back.
//
// Thread safety: the device's.
#pragma once

#include "kernels/cuda/device.h"

namespace weir::kernels::cuda {

// Begins, along the device's stream. REQUIRES: addresses and strides are multiples of 16.
void copy_pieces(device& d, const copy& c);

}  // namespace weir::kernels::cuda
