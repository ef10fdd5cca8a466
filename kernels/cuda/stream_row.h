// stream_row.h — a row of the residual stream in the registers of a block: what is to be added to it
// (pending_sum), its norm, and how its elements are stored.
//
// Every thread of the block calls the functions. A thread has up to `quads` quads of the row: four
// neighbouring numbers each, from quad threadIdx.x on, blockDim.x quads apart.
#pragma once

#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/layers.h"

namespace weir::kernels::cuda {

// Stores elements 4 * i to 4 * i + 3 of a row that begins at `to`.
__device__ __forceinline__ void put_quad(uint2* to, std::uint32_t i, bool paired, std::uint32_t first,
                                         std::uint32_t second) {
  if (paired) {
    auto* place = reinterpret_cast<std::uint32_t*>(to) + i / 4 * 8 + i % 4;
    place[0] = first;
    place[4] = second;
  } else {
    to[i] = make_uint2(first, second);
  }
}

__device__ __forceinline__ float4 plus(const float4& a, const float4& b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// What a thread of a block has of a row of `width` numbers: calls f(j, i) for its quad j, which is quad i of
// the row.
template <int quads, class F>
__device__ __forceinline__ void each_quad(std::uint32_t width, const F& f) {
#pragma unroll
  for (int j = 0; j < quads; ++j) {
    const std::uint32_t i = threadIdx.x + static_cast<std::uint32_t>(j) * blockDim.x;
    if (i < width / 4) f(j, i);
  }
}

// The weights of a norm, read before they are needed where there are registers for them.
template <int quads>
class norm_weights {
  static constexpr bool early = quads <= 2;

 public:
  __device__ __forceinline__ norm_weights(const float* weight, std::uint32_t width)
      : at_(reinterpret_cast<const float4*>(weight)) {
    if (early && weight) each_quad<quads>(width, [&](int j, std::uint32_t i) { read_[j] = __ldg(at_ + i); });
  }
  __device__ __forceinline__ float4 of(int j, std::uint32_t i) const { return early ? read_[j] : at_[i]; }

 private:
  const float4* at_;
  float4 read_[early ? quads : 1];
};

// The norm of a row that the threads of a block have in registers. `room`: block_sum().
template <int quads>
__device__ __forceinline__ void normalise(float4 (&row)[quads], const norm_args& n,
                                          const norm_weights<quads>& weights, std::uint32_t width,
                                          float* room) {
  if (n.centred) {
    float sum = 0;
    each_quad<quads>(width, [&](int j, std::uint32_t) { sum += row[j].x + row[j].y + row[j].z + row[j].w; });
    const float mean = block_sum(sum, room) / static_cast<float>(width);
    each_quad<quads>(width, [&](int j, std::uint32_t) {
      row[j] = make_float4(row[j].x - mean, row[j].y - mean, row[j].z - mean, row[j].w - mean);
    });
  }
  float squares = 0;
  each_quad<quads>(width, [&](int j, std::uint32_t) {
    const float4 v = row[j];
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  });
  const float scale = rsqrtf(block_sum(squares, room) / static_cast<float>(width) + n.eps);
  each_quad<quads>(width, [&](int j, std::uint32_t i) {
    const float4 v = row[j], w = weights.of(j, i);
    row[j] = make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w);
    if (n.by.bias) row[j] = plus(row[j], reinterpret_cast<const float4*>(n.by.bias)[i]);
  });
}

__device__ __forceinline__ float4 plus_times(const float4& a, const float4& b, float by) {
  return make_float4(fmaf(b.x, by, a.x), fmaf(b.y, by, a.y), fmaf(b.z, by, a.z), fmaf(b.w, by, a.w));
}

// Numbers 4 * i on of what experts make of row `row`.
__device__ __forceinline__ float4 sum_of(const expert_sum& e, std::size_t row, std::uint32_t width,
                                         std::uint32_t i) {
  const auto quad = [&](const float* from, std::size_t r) {
    return __ldcg(reinterpret_cast<const float4*>(from + r * width) + i);
  };
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (std::size_t slot = row * e.chosen; slot < (row + 1) * e.chosen; ++slot)
    sum = plus_times(sum, quad(e.made, slot), __ldcg(e.weights + slot));
  if (e.shared) sum = plus_times(sum, quad(e.shared, row), e.gates ? __ldcg(e.gates + row) : 1.0f);
  return sum;
}

// row = row `source` of x [rows, width] plus `p`, whose branch is only read. `behind` are the weights of
// p.behind. `room`: block_sum().
template <int quads>
__device__ __forceinline__ void sum_row(float4 (&row)[quads], const float* x, const pending_sum& p,
                                        const norm_weights<quads>& behind, std::size_t source,
                                        std::uint32_t width, float* room) {
  const auto* at = reinterpret_cast<const float4*>(x + source * width);
  const auto* branch_at = p.branch ? reinterpret_cast<const float4*>(p.branch + source * width) : nullptr;
  const bool apart = p.branch || p.behind.by.weight || p.factor != 1;  // what is added has a sum of its own
  float4 branch[quads];
  each_quad<quads>(width, [&](int j, std::uint32_t i) {
    row[j] = __ldcg(at + i);
    branch[j] = branch_at ? __ldcg(branch_at + i) : make_float4(0, 0, 0, 0);
    const auto add = [&](const float4& v) {
      if (apart)
        branch[j] = plus(branch[j], v);
      else
        row[j] = plus(row[j], v);
    };
    for (const float* bias : p.biases)
      if (bias) add(reinterpret_cast<const float4*>(bias)[i]);
    if (p.experts.made) add(sum_of(p.experts, source, width, i));
  });
  if (!apart) return;
  if (p.behind.by.weight) normalise(branch, p.behind, behind, width, room);
  each_quad<quads>(width, [&](int j, std::uint32_t) {
    const float4 b = branch[j];
    row[j] = plus(row[j], make_float4(p.factor * b.x, p.factor * b.y, p.factor * b.z, p.factor * b.w));
  });
}

// Stores a row of the stream to row `source` of x, and makes the row of the branch zeros where p.clear.
// REQUIRES: no other block reads them any more
template <int quads>
__device__ __forceinline__ void store_row(const float4 (&row)[quads], float* x, const pending_sum& p,
                                          std::size_t source, std::uint32_t width) {
  each_quad<quads>(width, [&](int j, std::uint32_t i) {
    reinterpret_cast<float4*>(x + source * width)[i] = row[j];
    if (p.branch && p.clear)
      reinterpret_cast<float4*>(p.branch + source * width)[i] = make_float4(0, 0, 0, 0);
  });
}

}  // namespace weir::kernels::cuda
