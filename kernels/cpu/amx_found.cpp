// The test for the matrix unit, in a file that is compiled without flags of an instruction set.
#include "kernels/cpu/amx.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weir::kernels {

const product_path* amx_tiles();

namespace {

// Asks the system to permit tiles: it saves the tile registers only of processes that have asked.
bool permitted() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // Linux: ARCH_REQ_XCOMP_PERM
  return ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

bool supported() {
  __builtin_cpu_init();
  const bool vectors = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  constexpr unsigned features = 7, amx_bf16 = 1u << 22, amx_tile = 1u << 24, avx512_bf16 = 1u << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool tiles = __get_cpuid_count(features, 0, &a, &b, &c, &d) && (d & amx_bf16) && (d & amx_tile);
  const bool halves = __get_cpuid_count(features, 1, &a, &b, &c, &d) && (a & avx512_bf16);
  return vectors && tiles && halves;
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
