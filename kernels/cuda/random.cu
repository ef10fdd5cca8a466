#include "kernels/cuda/random.h"

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/products/block_layout.h"
#include "kernels/random_weights.h"

namespace weir::kernels::cuda {
namespace {

__global__ void fill(void* to, dtype type, std::uint64_t elements, bool norm, std::uint64_t seed) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < elements; i += step) {
    if (type == dtype::bf16) {
      static_cast<std::uint16_t*>(to)[i] = random_weight(seed, i);
    } else if (type == dtype::f16) {
      static_cast<std::uint16_t*>(to)[i] = random_weight_f16(seed, i);
    } else {
      const std::uint32_t value = random_weight(seed, i);
      static_cast<float*>(to)[i] = __uint_as_float(value << 16) + (norm ? 1.0f : 0.0f);
    }
  }
}

}  // namespace

void fill_random(void* self, const matrix& to, std::uint32_t first, std::uint32_t rows, bool norm,
                 std::uint64_t seed) {
  device& d = of(self);
  if (d.failed()) return;
  if (!is_plain(to.type)) {
    fill_random_blocks(d, to, first, rows, seed);
    return d.breathe(device::rests_of_kernels);
  }
  auto* at = static_cast<std::byte*>(const_cast<void*>(to.data)) + first * bytes_of(to.type, to.cols);
  fill<<<static_cast<unsigned>(d.multiprocessors * 8), 256, 0, d.stream>>>(
      at, to.type, std::uint64_t{rows} * to.cols, norm, seed);
  WEIR_CUDA(d, cudaGetLastError());
  d.breathe(device::rests_of_kernels);
}

}  // namespace weir::kernels::cuda
