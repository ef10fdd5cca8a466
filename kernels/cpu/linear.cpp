// Which way of multiplying serves a linear.
#include "kernels/cpu/backend.h"

namespace weir::kernels {

void cpu_linear(void* self, const linear& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  const product_path& path = op.w.type == dtype::bf16 && cpu.amx ? *cpu.amx : *cpu.simd.products;
  cpu.multiplier.multiply(op, path, cpu.workers);
}

}  // namespace weir::kernels
