#include "kernels/cuda/device/limits.h"

#include <algorithm>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/products/products.h"
#include "kernels/cuda/random.h"

namespace weir::kernels::cuda {
namespace {

__global__ void read_kernel(const uint4* at, std::uint64_t count, unsigned* out) {
  unsigned sum = 0;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
  for (; i + 7 * step < count; i += 8 * step) {
    uint4 v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] = __ldcs(at + i + j * step);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  for (; i < count; i += step) sum += at[i].x;
  if (sum == 0x5eed5eedu) *out = sum;  // keeps the compiler from leaving the reads out
}

}  // namespace

void read(void* self, const void* at, std::uint64_t bytes) {
  device& d = of(self);
  if (d.failed()) return;
  read_kernel<<<static_cast<unsigned>(d.multiprocessors * 4), 512, 0, d.stream>>>(
      static_cast<const uint4*>(at), bytes / 16, static_cast<unsigned*>(d.workspace));
  WEIR_CUDA(d, cudaGetLastError());
  d.sync();
}

double peak_flops(void* self, dtype weights) {
  device& d = of(self);
  if (!is_plain(weights)) weights = dtype::bf16;  // products of many rows round quantised weights to it
  if (d.failed() || (!d.lt && !is_element(weights))) return 0;
  constexpr std::uint32_t n = 8192;
  constexpr std::uint64_t elements = std::uint64_t{n} * n;
  const std::uint64_t bytes = elements * size_of(weights);
  std::byte* memory = nullptr;
  if (!WEIR_CUDA(d, cudaMalloc(&memory, 3 * bytes))) return 0;
  fill_random(self, {memory, weights, 2 * n, n}, 0, 2 * n, false, 1);
  products p(d);
  const product what{weights, memory, n, n, memory + bytes, n, memory + 2 * bytes, product_out::element};
  p.run(what, {}, what.out);
  cudaEvent_t from = nullptr, to = nullptr;
  WEIR_CUDA(d, cudaEventCreate(&from));
  WEIR_CUDA(d, cudaEventCreate(&to));
  float least = 1e30f;
  for (int i = 0; i < 5 && !d.failed(); ++i) {
    float ms = 0;
    WEIR_CUDA(d, cudaEventRecord(from, d.stream));
    p.run(what, {}, what.out);
    WEIR_CUDA(d, cudaEventRecord(to, d.stream));
    WEIR_CUDA(d, cudaEventSynchronize(to));
    WEIR_CUDA(d, cudaEventElapsedTime(&ms, from, to));
    least = std::min(least, ms);
  }
  if (from) cudaEventDestroy(from);
  if (to) cudaEventDestroy(to);
  cudaFree(memory);
  return d.failed() ? 0 : 2.0 * n * n * n / (least * 1e-3);
}

}  // namespace weir::kernels::cuda
