// launch_product.h — asks choose_product() for a product on a device, and launches what it chose.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/products/choose_product.h"
#include "kernels/cuda/products/products.h"
#include "kernels/cuda/products/stream_blocks.h"

namespace weir::kernels::cuda {

product_device facts_of(const device& d);

// The function for a product with plain weights. `normed`: with a norm in front of it.
product_function function_for(const device& d, const product& p, bool normed = false);
// The same with quantised weights, with the norm and the order of inputs that `p` says; `none` where the
// weights are plain.
product_function function_for(const device& d, const block_product& p);

// Launches the product by function `by`. REQUIRES: function_for() said so, and `by` is neither none nor
// linear; in the first form it is not blas, whose products have algorithms (class products), and in the
// second it reads_blocks()
void launch_product(device& d, product_function by, const product& p, const norm_before& norm = {});
void launch_product(device& d, product_function by, const block_product& p);

}  // namespace weir::kernels::cuda
