// Whether the matrix unit is there: asked here, where no flag of an instruction set is used.
#include "kernels/cpu/amx.h"

#if defined(__x86_64__)

#include <sys/syscall.h>
#include <unistd.h>

namespace weir::kernels {

const product_path* amx_tiles();

namespace {

// The system saves tiles only of processes that have asked for it.
bool permitted() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // Linux: ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

bool supported() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
         __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

}  // namespace

const product_path* amx_products() {
  static const bool there = supported() && permitted();
  return there ? amx_tiles() : nullptr;
}

}  // namespace weir::kernels

#else

namespace weir::kernels {
const product_path* amx_products() { return nullptr; }
}  // namespace weir::kernels

#endif
