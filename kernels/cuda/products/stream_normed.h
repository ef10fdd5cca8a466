// stream_normed.h — products of one row of elements with a norm in front, by the kernel of stream.cu.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/products/norm_before.h"
#include "kernels/cuda/products/products.h"

namespace weir::kernels::cuda {

// Whether stream_normed() supports a product: of one row of bf16 on the Hopper path, on a device that is not
// deterministic. Not of f16, which cannot keep large numbers of a row that its norm has not divided yet.
bool can_stream_normed(const device& d, const product& p);

// Launches the product of the row that `norm` says; p.x is not read. It moves the bytes of the weights, 4 * k
// of the row and of the norm's weights, and the outputs. REQUIRES: can_stream_normed()
void stream_normed(device& d, const product& p, const norm_before& norm);

}  // namespace weir::kernels::cuda
