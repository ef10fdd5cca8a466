// route.h — the experts of rows, for the single operation `route` (ops.h) and for the decoder.
//
// Two kernels: one makes the router's products, a warp for a few experts of a few rows; the other scores the
// products of a row and chooses, a warp for each row. Every product is summed in f32 in an order that depends
// on the width alone, so that a row's experts depend on that row alone.
//
// Thread safety: the device's (device.h).
#pragma once

#include "kernels/cuda/device/device.h"

namespace weir::kernels::cuda {

// Launches the operation. The rows are `x` in place of op.x: f32, or elements of `type`. Where `pages_at` is
// not null, rows whose entry is -1 pad the batch (rows_view): they get the experts -1, which other kernels
// leave out, and weights of 0. Products lie in device::workspace on their way.
void route_rows(device& d, const route& op, const void* x, dtype type, const std::int32_t* pages_at);

}  // namespace weir::kernels::cuda
