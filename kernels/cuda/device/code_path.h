// code_path.h — which kernels a device runs. Plain C++, so that code without CUDA may decide by it.
#pragma once

namespace weir::kernels::cuda {

enum class code_path {
  general,  // those of every device from compute capability 8.0 on
  // Those of 9.0a beside them: bulk copies, warpgroup products, clusters, and launches that depend on one
  // another. The code has them inside __CUDA_ARCH_FEAT_SM90_ALL.
  hopper
};

}  // namespace weir::kernels::cuda
