// put_expert.h — what the kernels of experts' products are given, and how they write their sums.
#pragma once

#include "kernels/cuda/element.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/products/gate.h"

namespace weir::kernels::cuda {

struct expert_args {
  const unsigned char* w;  // of expert 0
  std::uint64_t stride;    // bytes from one expert's matrix to the next
  const float* bias;       // [experts, n]; may be null
  const element* x;        // [slots / share, k]
  void* out;
  const std::int32_t *ids, *order;  // [slots]
  const expert_tile* tiles;
  const std::int32_t* count;  // of tiles
  std::uint32_t n, k, slots, share;
  expert_out kind;
  activation f;
  float limit;
  bool ids_settled;

  __device__ __forceinline__ const unsigned char* matrix_of(std::int32_t expert) const {
    return w + static_cast<std::uint64_t>(expert) * stride;
  }
  __device__ __forceinline__ const element* row_of(std::int32_t slot) const {
    return x + std::size_t{static_cast<std::uint32_t>(slot) / share} * k;
  }
  // The bias of output `i` of an expert.
  __device__ __forceinline__ float bias_of(std::int32_t expert, std::uint32_t i) const {
    return bias ? bias[static_cast<std::size_t>(expert) * n + i] : 0.0f;
  }
  // Outputs that a slot has in `out`.
  __host__ __device__ __forceinline__ std::uint32_t width() const {
    return kind == expert_out::gated ? n / 2 : n;
  }
  // f(gate) * up, and f(v) where there is no gate.
  __device__ __forceinline__ float activated(float gate, float up) const {
    if (f == activation::clamped) return clamped(gate, up, limit);
    if (f == activation::relu2) return (gate <= 0 ? 0.0f : gate * gate) * up;  // a NaN stays one
    return cuda::gated(f, gate, up);
  }
  // What output `i` of a slot is, of the sum `v`: of the sums of gate and up where there is a gate.
  __device__ __forceinline__ float output(std::int32_t expert, std::uint32_t i, float v, float up) const {
    v += bias_of(expert, i);
    if (kind == expert_out::made) return v;
    return activated(v, kind == expert_out::gated ? up + bias_of(expert, i + n / 2) : 1.0f);
  }
};

// The block's tile, blockIdx.x; its count is 0 where there are not so many.
__device__ __forceinline__ expert_tile tile_of(const expert_args& a) {
  if (static_cast<std::int32_t>(blockIdx.x) >= __ldcg(a.count)) return {};
  const expert_tile* t = a.tiles + blockIdx.x;
  return {__ldcg(&t->expert), __ldcg(&t->first), __ldcg(&t->count)};
}

// Writes output `i` of a slot.
template <dtype type>
__device__ __forceinline__ void put_one(const expert_args& a, std::int32_t expert, std::int32_t slot,
                                        std::uint32_t i, float v, float up) {
  const std::size_t at = static_cast<std::size_t>(slot) * a.width() + i;
  const float out = a.output(expert, i, v, up);
  if (a.kind == expert_out::made)
    static_cast<float*>(a.out)[at] = out;
  else
    static_cast<element*>(a.out)[at] = element_of<type>(out);
}

// Writes outputs `i` and `i` + 1 of a slot. REQUIRES: i is even
template <dtype type>
__device__ __forceinline__ void put_two(const expert_args& a, std::int32_t expert, std::int32_t slot,
                                        std::uint32_t i, float2 v, float2 up) {
  const std::size_t at = static_cast<std::size_t>(slot) * a.width() + i;
  const float first = a.output(expert, i, v.x, up.x), second = a.output(expert, i + 1, v.y, up.y);
  if (a.kind == expert_out::made)
    *reinterpret_cast<float2*>(static_cast<float*>(a.out) + at) = make_float2(first, second);
  else
    *reinterpret_cast<std::uint32_t*>(static_cast<element*>(a.out) + at) = pair_of<type>(first, second);
}

// The row of an expert's matrix that is row `r` of tile `tile` of 16 rows: with a gate a tile has eight rows
// of gate and the same eight of up. Rows behind the last one repeat it.
__device__ __forceinline__ std::uint32_t tile_row(const expert_args& a, std::uint32_t tile, std::uint32_t r) {
  if (a.kind != expert_out::gated) return min(tile * 16 + r, a.n - 1);
  return min(tile * 8 + r % 8, a.n / 2 - 1) + (r < 8 ? 0 : a.n / 2);
}

// Adds the sums of a block's warps of tile blockIdx.x for the only row of x, which is that of `slot`, and
// writes the outputs. `parts` is [warps, 32 lanes, 4], the accumulators of mma(), of which column 0 counts.
template <dtype type, int warps>
__device__ __forceinline__ void put_slot(const expert_args& a, std::int32_t expert, std::int32_t slot,
                                         const float* parts) {
  const std::uint32_t r = threadIdx.x;
  const auto sum_of = [&](std::uint32_t row) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += parts[w * 128 + row % 8 * 16 + (row < 8 ? 0 : 2)];
    return sum;
  };
  if (a.kind == expert_out::gated) {
    const std::uint32_t i = blockIdx.x * 8 + r;
    if (r < 8 && i < a.n / 2) put_one<type>(a, expert, slot, i, sum_of(r), sum_of(r + 8));
  } else {
    const std::uint32_t i = blockIdx.x * 16 + r;
    if (r < 16 && i < a.n) put_one<type>(a, expert, slot, i, sum_of(r), 0);
  }
}

}  // namespace weir::kernels::cuda
