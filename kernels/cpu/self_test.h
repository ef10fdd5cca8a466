// self_test.h — whether a way of multiplying gives every row the same bits whatever is multiplied beside it.
//
// Everything that promises a job the same tokens in any batch stands on this, so it is asked of the machine
// at hand before it is used: an instruction that rounds differently, or tiles that the system does not save,
// would change what models say without a sign.
//
// Thread safety: pure.
#pragma once

#include "kernels/cpu/simd.h"

namespace weir::kernels {

// Multiplies a few rows alone, together, in slices, and compares the bits; and the values with plain sums.
bool is_exact(const product_path& path, dtype type);

}  // namespace weir::kernels
