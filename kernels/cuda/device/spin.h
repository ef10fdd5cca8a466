// spin.h — waiting on the host for something that a kernel writes into pinned memory, while the stream has
// more work behind that kernel.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/device/device.h"
#include "kernels/relax.h"

namespace weir::kernels::cuda {

// Spins until there() returns true. Returns false where the device failed, or where the stream has become
// idle and there() is still false; the latter becomes the device's fault.
template <class There>
bool spin_until(device& d, There there) {
  constexpr unsigned between_questions = 1u << 14;  // how often the driver is asked: every 0.2 ms or so
  for (unsigned tries = 1; !there(); ++tries) {
    relax();
    if (tries % between_questions != 0) continue;
    if (d.failed()) return false;
    const cudaError_t e = cudaStreamQuery(d.stream);
    if (e == cudaErrorNotReady) continue;
    if (!WEIR_CUDA(d, e)) return false;
    if (there()) return true;
    d.fault = d.label + ": a step ended, and what it owes the host did not come";
    return false;
  }
  return true;
}

}  // namespace weir::kernels::cuda
