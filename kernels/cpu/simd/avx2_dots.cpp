#include "kernels/cpu/simd/dots.h"

namespace weir::kernels {

const product_path* avx2_dots(dtype type) { return dots_of(type); }

}  // namespace weir::kernels
