// cuda_device.h — the device that tests of the cuda backend share, and the one way of opening it. A test that
// gets none says why on stderr and passes.
#pragma once

#include <iostream>
#include <memory>
#include <string>

#include "kernels/cuda/backend.h"

namespace weir::tests {

// Null: there is none.
inline std::shared_ptr<const kernels::backend> cuda_device(bool deterministic = false) {
  static std::shared_ptr<const kernels::backend> opened[2];
  auto& b = opened[deterministic];
  std::string why;
  if (!b) b = kernels::cuda_backend(0, why, deterministic);
  if (!b) std::cerr << "skipped: " << why << "\n";
  return b;
}

}  // namespace weir::tests
