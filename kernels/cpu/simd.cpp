#include "kernels/cpu/simd.h"

#include <array>

namespace weir::kernels {

const simd_kernels* baseline_kernels();
#if defined(__x86_64__)
const simd_kernels* avx2_kernels();
#ifndef WEIR_WITHOUT_AVX512
const simd_kernels* avx512_kernels();
#endif
#endif

std::span<const simd_kernels* const> simd_choices() {
  struct found {
    std::array<const simd_kernels*, 3> list{};
    std::size_t count = 0;
    found() {
#if defined(__x86_64__)
      __builtin_cpu_init();
      // f16c is not asked for: it is older than avx2, and clang 14 cannot ask for it.
      const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#ifndef WEIR_WITHOUT_AVX512
      const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
      if (avx512) list[count++] = avx512_kernels();
#endif
      if (avx2) list[count++] = avx2_kernels();
#endif
      list[count++] = baseline_kernels();
    }
  };
  static const found all;
  return {all.list.data(), all.count};
}

const logit_loops& logits() {
  static const logit_loops& best = *simd_choices().front()->logits;
  return best;
}

}  // namespace weir::kernels
