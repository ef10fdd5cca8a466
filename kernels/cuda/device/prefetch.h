// prefetch.h — loads into the L2 cache ahead of use, and the wait for loads into registers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace weir::kernels::cuda {

// Brings the 128 bytes around `at` into the L2 cache.
__device__ __forceinline__ void prefetch(const float* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// Returns when the warp's lanes have `bits`, which they have computed of what they load: a vote needs it.
// Nobody needs the result of the vote, but the compiler must not see that.
__device__ __forceinline__ void wait_for(std::uint32_t bits) {
  if (__all_sync(~0u, bits == 0x12345678)) __nanosleep(1);
}

}  // namespace weir::kernels::cuda
