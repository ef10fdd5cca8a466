// A build without CUDA.
#include "kernels/cuda/backend.h"

namespace weir::kernels {

int cuda_devices(std::string& why_none) {
  why_none = "weir was built without CUDA";
  return 0;
}

std::shared_ptr<const backend> cuda_backend(int, std::string& why_not, bool) {
  cuda_devices(why_not);
  return nullptr;
}

}  // namespace weir::kernels
