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

std::vector<decoder_piece> time_cuda_decoder(const backend&, const decoder_shape&, std::uint32_t,
                                             std::uint32_t) {
  return {};
}

}  // namespace weir::kernels
