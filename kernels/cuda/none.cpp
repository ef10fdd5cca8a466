// A build without CUDA.
#include "kernels/cuda/backend.h"

namespace weir::kernels {

cuda_machine find_cuda() { return {cuda_presence::none, 0, "weir was built without CUDA"}; }

int cuda_devices(std::string& why_none) {
  why_none = find_cuda().why;
  return 0;
}

std::shared_ptr<const backend> cuda_backend(int, std::string& why_not, bool) {
  cuda_devices(why_not);
  return nullptr;
}

std::optional<cuda_facts> facts_of(const backend&) { return std::nullopt; }

device_state cuda_state(int) {
  device_state s;
  s.why_unknown = "weir was built without CUDA";
  return s;
}

device_state state_of(const backend&) { return cuda_state(0); }

std::vector<decoder_piece> time_cuda_decoder(const backend&, const decoder_shape&, std::uint32_t,
                                             std::uint32_t) {
  return {};
}

}  // namespace weir::kernels
