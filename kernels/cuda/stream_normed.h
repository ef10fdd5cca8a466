// stream_normed.h — products of one row of elements with a norm in front, by the kernel of stream.cu.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/norm_before.h"
#include "kernels/cuda/products.h"

namespace weir::kernels::cuda {

// Whether stream_normed() supports a product: of one row on the Hopper path, on a device that is not
// deterministic.
bool can_stream_normed(const device& d, const product& p);

// Launches the product of the row that `norm` says; p.x is not read. It moves the bytes of the weights, 4 * k
// of the row and of the norm's weights, and the outputs. REQUIRES: can_stream_normed()
void stream_normed(device& d, const product& p, const norm_before& norm);

}  // namespace weir::kernels::cuda
