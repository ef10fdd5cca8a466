// attention_f32.h — attention in f32, for models that run by single operations.
#pragma once

#include "kernels/cuda/device/device.h"

namespace weir::kernels::cuda {

// Whether attend_f32() supports the operation: heads of up to 256 elements; heads, strides and addresses are
// multiples of 16 bytes.
bool can_attend_f32(const attention& op);

// Launches the operation. `slices` is a copy of op.slices in memory of the device, and so are the pages that
// it points to. On a deterministic device a row's bits depend on that row alone. REQUIRES: can_attend_f32()
void attend_f32(device& d, const attention& op, const kv_slice* slices);

}  // namespace weir::kernels::cuda
