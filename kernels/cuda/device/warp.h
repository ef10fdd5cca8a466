// warp.h — the sum and the maximum over a warp, and the sum over a block. Every lane of the warp, or every
// thread of the block, calls them and gets the result. And fast functions of one number.
#pragma once

#include <cuda_runtime.h>

namespace weir::kernels::cuda {

// 2 to the power of x by one instruction, approximate; subnormal results are 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The hyperbolic tangent, to 2^-22 of 1.
__device__ __forceinline__ float tanh_quick(float x) {
  return 1.0f - __fdividef(2.0f, 1.0f + exp2_fast(x * 2.88539008f));
}

__device__ __forceinline__ float warp_sum(float v) {
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

// The sum over the block. `room` is [32] floats of shared memory. REQUIRES: blockDim.x is a multiple of 32
__device__ __forceinline__ float block_sum(float v, float* room) {
  v = warp_sum(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_sum(threadIdx.x % 32 < blockDim.x / 32 ? room[threadIdx.x % 32] : 0.0f);
}

}  // namespace weir::kernels::cuda
