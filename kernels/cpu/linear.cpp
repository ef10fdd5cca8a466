#include "kernels/cpu/backend.h"

namespace weir::kernels {

void cpu_linear(void* self, const linear& op) {
  auto& cpu = *static_cast<cpu_state*>(self);
  cpu.multiplier.multiply(op, cpu.path_of(op.w.type), cpu.workers);
}

}  // namespace weir::kernels
