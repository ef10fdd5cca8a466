// row_norm.h — what stream.cu and stream_blocks_single.cu compute of a norm in front of their product
// (norm_before.h).
//
// The row is multiplied by the weights of the norm when a warp reads its part of it. The factor, which all
// elements share, multiplies the sums of the product at the end. So no warp waits for the squares of the
// others, and there is no kernel between the one that writes the row and the product.
#pragma once

#include "kernels/cuda/device/prefetch.h"
#include "kernels/cuda/products/norm_before.h"

namespace weir::kernels::cuda {

// The row of `k` elements. It may be read when the kernels in front have ended.
__device__ __forceinline__ const float* normed_row(const norm_before& n, std::uint32_t k) {
  return n.rows + (n.from ? std::size_t{k} * static_cast<std::size_t>(*n.from) : 0);
}

// The factor of a row of `k` elements, from the sums of the squares of its `parts` parts; 1 where there is no
// norm.
template <int parts>
__device__ __forceinline__ float factor_of(const norm_before& n, const float* squares, std::uint32_t k) {
  if (!n.rows) return 1;
  float all = 0;
#pragma unroll
  for (int i = 0; i < parts; ++i) all += squares[i];
  return rsqrtf(all / static_cast<float>(k) + n.eps);
}

__device__ __forceinline__ float squares_of(const float4& v) {
  return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}

}  // namespace weir::kernels::cuda
