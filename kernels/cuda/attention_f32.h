// attention_f32.h — attention in f32, for models that run by single operations.
#pragma once

#include "kernels/cuda/device.h"

namespace weir::kernels::cuda {

// Whether f32_attention() supports the operation: heads of up to 256 elements, everything 16 bytes at a time.
bool can_attend_f32(const attention& op);

// Launches the operation. `slices` is op.slices in memory of the device, its pages too. On a deterministic
// device a row's bits depend on that row alone. REQUIRES: can_attend_f32()
void attend_f32(device& d, const attention& op, const kv_slice* slices);

}  // namespace weir::kernels::cuda
