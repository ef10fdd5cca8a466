#include "kernels/ops.h"
namespace weir::kernels {
std::shared_ptr<const backend> cpu_backend(unsigned) { return reference_backend(); }
}  // namespace weir::kernels
