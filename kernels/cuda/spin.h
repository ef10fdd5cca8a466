// spin.h — waiting for what a kernel writes into the host's memory while the stream has more to do behind it.
//
// Thread safety: the device's.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/relax.h"

namespace weir::kernels::cuda {

// Until there() says so; false: the device failed, or has done all that it was given without.
template <class There>
bool spin_until(device& d, There there) {
  constexpr unsigned between_questions = 1u << 14;  // to the driver: some 0.2 ms
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
