// amx.h — products of bf16 weights on the matrix unit of x86 processors.
//
// Thread safety: pure functions; begin and end change the calling thread's tile registers alone.
#pragma once

#include "kernels/cpu/simd.h"

namespace weir::kernels {

// The way of multiplying; null where the processor has no such unit, or the system does not let this process
// use it.
const product_path* amx_products();

}  // namespace weir::kernels
