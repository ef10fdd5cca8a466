// launch.h — launches of kernels, and chains of dependent launches.
//
// On the Hopper path a kernel may start while the one in front of it on the stream still runs (programmatic
// dependent launch). It must then call wait_for_previous() before it reads or overwrites anything that kernel
// touches. Every kernel of a chain calls it, so that when it returns all kernels further in front have ended,
// too. A chain begins with launch_after_all(); all its kernels may read at any time what was written before
// that launch. On the general path kernels run one after the other.
//
// The launch functions do nothing on a device that has failed, and keep their own failure in device::fault.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "kernels/cuda/device/device.h"

namespace weir::kernels::cuda {

// Returns when the kernels in front of this one have ended and what they wrote is visible.
__device__ __forceinline__ void wait_for_previous() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the kernel behind this one start as soon as all blocks have called this or ended.
__device__ __forceinline__ void let_next_start() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Launches `kernel` in the chain, in clusters of `cluster` blocks, which run at once and see each other's
// shared memory (on the Hopper path). `threads` are those of a block, `shared` the bytes of its dynamic
// shared memory.
template <class... P, class... A>
void launch_clusters(device& d, void (*kernel)(P...), dim3 grid, dim3 cluster, unsigned threads,
                     std::size_t shared, A&&... args) {
  if (d.failed()) return;
  const unsigned blocks = cluster.x * cluster.y * cluster.z;
  if (d.launches) d.launches->push_back({reinterpret_cast<const void*>(kernel), threads, shared, blocks});
  cudaLaunchConfig_t how{};
  how.gridDim = grid;
  how.blockDim = dim3(threads);
  how.dynamicSmemBytes = shared;
  how.stream = d.stream;
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {cluster.x, cluster.y, cluster.z};
  if (d.path == code_path::hopper) {
    how.attrs = attributes;
    how.numAttrs = blocks > 1 ? 2 : 1;
  }
  WEIR_CUDA(d, cudaLaunchKernelEx(&how, kernel, std::forward<A>(args)...));
}

// Launches `kernel` in the chain, without clusters.
template <class... P, class... A>
void launch(device& d, void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t shared, A&&... args) {
  launch_clusters(d, kernel, grid, dim3(1), threads, shared, std::forward<A>(args)...);
}

// Launches `kernel` so that it starts when everything before it on the stream has ended.
template <class... P, class... A>
void launch_after_all(device& d, void (*kernel)(P...), dim3 grid, unsigned threads, A&&... args) {
  if (d.failed()) return;
  if (d.launches) d.launches->push_back({reinterpret_cast<const void*>(kernel), threads, 0, 1});
  cudaLaunchConfig_t how{};
  how.gridDim = grid;
  how.blockDim = dim3(threads);
  how.stream = d.stream;
  WEIR_CUDA(d, cudaLaunchKernelEx(&how, kernel, std::forward<A>(args)...));
}

// Allows blocks of `kernel` to have `bytes` bytes of dynamic shared memory. False: the device failed.
template <class... P>
bool allow_shared(device& d, void (*kernel)(P...), std::size_t bytes) {
  return WEIR_CUDA(
      d, cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                              cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

}  // namespace weir::kernels::cuda
