#include "kernels/cpu/simd/table.h"

namespace weir::kernels {

const simd_kernels* avx2_kernels() { return &table; }

}  // namespace weir::kernels
