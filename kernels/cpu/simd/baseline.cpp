#include "kernels/cpu/simd/table.h"

namespace weir::kernels {

const simd_kernels* baseline_kernels() { return &table; }

}  // namespace weir::kernels
