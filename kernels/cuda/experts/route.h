// route.h — the experts of rows, for the single operation `route` (ops.h) and for the decoder.
//
// Two kernels: one makes the router's products, a warp for a few experts of a few rows; the other scores the
// products of a row and chooses, a warp for each row. Every product is summed in f32 in an order that depends
// on the width alone, so that a row's experts depend on that row alone. On a device that is not
// deterministic, tensor cores make the products of many rows of elements (route_tiles.cu), in another order.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/layers.h"

namespace weir::kernels::cuda {

// Launches the operation. The rows are `x` in place of op.x: f32, or elements of `type`. Where `pages_at` is
// not null, rows whose entry is -1 pad the batch (rows_view): they get the experts -1, which other kernels
// leave out, and weights of 0. Products lie in device::workspace on their way.
void route_rows(device& d, const route& op, const void* x, dtype type, const std::int32_t* pages_at);

// The router's products: x is [rows, width], router is [outputs, width], products is [rows, outputs].
struct router_product {
  const void* x;
  const float *router, *bias;
  float* products;
  std::uint32_t rows, width, experts, outputs;  // outputs: the experts, and the gate of a shared one
};

// Whether route_tiles() takes them, and the launch. x are elements of `type`.
bool can_route_tiles(const device& d, const router_product& p);
void route_tiles(device& d, dtype type, const router_product& p);

// Whether begin_mixture() takes the operation: few rows, on the Hopper path, on a device that is not
// deterministic.
bool can_begin_mixture(const device& d, const route& op);

// norm() of rows of `x` [op.rows, op.width], which `before` is added to, and route_rows() of the normed rows,
// in one kernel (front.cu). `normed` [op.rows, op.width] are elements of `type`, in plain order.
// REQUIRES: can_begin_mixture()
void begin_mixture(device& d, dtype type, float* x, const pending_sum& before, const norm_args& n,
                   const route& op, const std::int32_t* pages_at, element* normed);

}  // namespace weir::kernels::cuda
