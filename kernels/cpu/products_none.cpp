// Without oneDNN every product is our own kernel's.
#if !defined(WEIR_ONEDNN)

#include "kernels/cpu/products.h"

namespace weir::kernels {

struct products::impl {};

products::products(bool) {}
products::~products() = default;
std::uint32_t products::multiply(const linear&, const simd_kernels&, team&) { return 0; }

}  // namespace weir::kernels

#endif
