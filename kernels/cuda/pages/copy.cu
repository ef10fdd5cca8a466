#include "kernels/cuda/pages/copy.h"

#include <algorithm>

#include "kernels/cuda/device/launch.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned threads = 256, units_each = 4;  // units of 16 bytes that a thread copies at once

// One row of blocks for each piece. The driver's copy of pieces with a pitch allows at most 2 GiB between two
// pieces, and launching one copy for each piece takes longer than the copies themselves. Pinned memory is
// accessed directly over the link; enough accesses are under way at once to fill it.
__global__ void copy_kernel(copy c) {
  wait_for_previous();
  const auto* from = static_cast<const std::byte*>(c.from) + blockIdx.y * c.from_stride;
  auto* to = static_cast<std::byte*>(c.to) + blockIdx.y * c.to_stride;
  const std::uint64_t units = c.bytes / sizeof(uint4), span = std::uint64_t{threads} * units_each;
  for (std::uint64_t base = blockIdx.x * span; base < units; base += gridDim.x * span) {
    uint4 v[units_each];
#pragma unroll
    for (unsigned j = 0; j < units_each; ++j) {
      const std::uint64_t i = base + j * threads + threadIdx.x;
      if (i < units) v[j] = reinterpret_cast<const uint4*>(from)[i];
    }
#pragma unroll
    for (unsigned j = 0; j < units_each; ++j) {
      const std::uint64_t i = base + j * threads + threadIdx.x;
      if (i < units) reinterpret_cast<uint4*>(to)[i] = v[j];
    }
  }
  const std::uint64_t rest = units * sizeof(uint4) + threadIdx.x;
  if (blockIdx.x == 0 && rest < c.bytes) to[rest] = from[rest];
}

}  // namespace

void copy_pieces(device& d, const copy& c) {
  if (c.bytes == 0 || c.count == 0) return;
  const std::uint64_t spans = (c.bytes / sizeof(uint4) + threads * units_each - 1) / (threads * units_each);
  const auto most = static_cast<std::uint64_t>(8 * d.multiprocessors);
  const dim3 grid(
      static_cast<unsigned>(std::clamp<std::uint64_t>(spans, 1, std::max<std::uint64_t>(1, most / c.count))),
      c.count);
  launch(d, copy_kernel, grid, threads, 0, c);
}

}  // namespace weir::kernels::cuda
