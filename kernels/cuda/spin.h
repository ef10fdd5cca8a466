// spin.h — waiting for what a kernel writes into the host's memory, when the stream has more to do behind it.
//
// Thread safety: the device's.
#pragma once

#include "kernels/cuda/device.h"

namespace weir::kernels::cuda {

// Until ready() says so; false: the device failed, or has done all that it was given without.
template <class Ready>
bool spin_until(device& d, Ready ready) {
  constexpr unsigned between_queries = 4096;
  for (unsigned tries = 1; !ready(); ++tries) {
    __builtin_ia32_pause();
    if (tries % between_queries != 0) continue;
    if (d.failed()) return false;
    const cudaError_t e = cudaStreamQuery(d.stream);
    if (e == cudaErrorNotReady) continue;
    if (!WEIR_CUDA(d, e)) return false;
    if (ready()) return true;
    d.fault = d.label + ": a step ended and what it owes the host did not come";
    return false;
  }
  return true;
}

}  // namespace weir::kernels::cuda
