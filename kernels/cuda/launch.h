// launch.h — launches along a chain of dependent kernels.
//
// A kernel may start while the one before it still runs (programmatic dependent launch, 9.0): it must call
// wait_for_previous() before it touches what that one writes, and every kernel of a chain calls it, so that
// completion carries along. A chain begins with launch_after_all(): what was written before that, all of its
// kernels may read at any time.
#pragma once

#include <cuda_runtime.h>

#include <utility>

#include "kernels/cuda/device.h"

namespace weir::kernels::cuda {

__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The blocks of a cluster run at once and see each other's shared memory (9.0).
template <class... P, class... A>
void launch_clusters(device& d, void (*kernel)(P...), dim3 grid, dim3 cluster, unsigned threads,
                     std::size_t shared, A&&... args) {
  if (d.failed()) return;
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
  if (d.capability >= 90) {
    how.attrs = attributes;
    how.numAttrs = cluster.x * cluster.y * cluster.z > 1 ? 2 : 1;
  }
  WEIR_CUDA(d, cudaLaunchKernelEx(&how, kernel, std::forward<A>(args)...));
}

template <class... P, class... A>
void launch(device& d, void (*kernel)(P...), dim3 grid, unsigned threads, std::size_t shared, A&&... args) {
  launch_clusters(d, kernel, grid, dim3(1), threads, shared, std::forward<A>(args)...);
}

// Starts when everything before it has ended, and sees what that wrote.
template <class... P, class... A>
void launch_after_all(device& d, void (*kernel)(P...), dim3 grid, unsigned threads, A&&... args) {
  if (d.failed()) return;
  cudaLaunchConfig_t how{};
  how.gridDim = grid;
  how.blockDim = dim3(threads);
  how.stream = d.stream;
  WEIR_CUDA(d, cudaLaunchKernelEx(&how, kernel, std::forward<A>(args)...));
}

// Once a kernel and device: lets a block have that much shared memory.
template <class... P>
bool allow_shared(device& d, void (*kernel)(P...), std::size_t bytes) {
  return WEIR_CUDA(
      d, cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                              cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

}  // namespace weir::kernels::cuda
