// self_test.h — tests whether a way of multiplying gives every row the same bits whatever is multiplied
// beside it.
//
// The promise that a job gets the same tokens in any batch depends on this. It is therefore tested on the
// machine before the way is used: an instruction that rounds differently, or tile registers that the system
// does not save, would change tokens unnoticed.
//
// Thread safety: pure function.
#pragma once

#include "kernels/cpu/simd.h"

namespace weir::kernels {

// Multiplies a few rows alone, together and in slices. Returns whether the bits are the same, and the values
// close to plain sums.
bool is_exact(const product_path& path, dtype type);

}  // namespace weir::kernels
