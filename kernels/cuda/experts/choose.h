// choose.h — the experts of one row, by one warp: their scores, of the router's products, and the choice.
#pragma once

#include "kernels/cuda/device/warp.h"
#include "kernels/model_shape.h"

namespace weir::kernels::cuda {

struct choice_args {
  const float* choice_bias;
  const std::int32_t* pages_at;  // [rows]; may be null
  std::int32_t* ids;
  float *weights, *shared;
  expert_router how;
};

// The rank of a number as an unsigned one, above 0: that of NaN is the least, and -0 has that of 0.
__device__ __forceinline__ std::uint32_t rank_of(float v) {
  if (v != v) v = -INFINITY;
  const std::uint32_t bits = __float_as_uint(v + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The scores of a row's products, and the ranks that the choice is made by. A lane has every 32nd expert.
template <class Products>
__device__ __forceinline__ void score(const choice_args& a, const Products& products, std::uint32_t lane,
                                      float* scores, std::uint32_t* ranks) {
  const std::uint32_t experts = a.how.experts;
  float largest = -INFINITY, total = 0;
  for (std::uint32_t e = lane; e < experts; e += 32) {
    const float p = products(e);
    scores[e] = p;
    ranks[e] = rank_of(p);
    largest = fmaxf(largest, p);
  }
  largest = warp_max(largest);
  for (std::uint32_t e = lane; e < experts; e += 32) {
    const float p = scores[e];
    total += scores[e] = a.how.sigmoid ? 1.0f / (1.0f + expf(-p)) : expf(p - largest);
  }
  total = warp_sum(total);
  for (std::uint32_t e = lane; e < experts; e += 32) {
    if (!a.how.sigmoid) scores[e] /= total;
    if (a.choice_bias) ranks[e] = rank_of(scores[e] + a.choice_bias[e]);
  }
  __syncwarp();  // all lanes read the scores of the chosen
}

// Chooses one expert after the other. Lane i % 32 writes the i-th.
__device__ __forceinline__ void choose(const choice_args& a, std::size_t row, std::uint32_t lane,
                                       const float* scores, std::uint32_t* ranks) {
  std::int32_t* ids = a.ids + row * a.how.chosen;
  float* weights = a.weights + row * a.how.chosen;
  std::uint32_t rank = 0, best = 0;  // the lane's best expert, of those that are left
  const auto look = [&] {
    rank = 0;
    for (std::uint32_t e = lane; e < a.how.experts; e += 32)
      if (ranks[e] > rank) rank = ranks[e], best = e;
  };
  look();
  float sum = 0;
  for (std::uint32_t i = 0; i < a.how.chosen; ++i) {
    const std::uint32_t top = __reduce_max_sync(~0u, rank);
    const std::uint32_t e = __reduce_min_sync(~0u, rank == top ? best : ~0u);
    const float s = scores[e];
    sum += s;
    if (i % 32 == lane) {
      ids[i] = static_cast<std::int32_t>(e);
      weights[i] = s;
    }
    if (e % 32 == lane) {
      ranks[e] = 0;
      look();
    }
  }
  for (std::uint32_t i = lane; i < a.how.chosen; i += 32)
    weights[i] = weights[i] / (a.how.renormalised ? sum : 1.0f) * a.how.factor;
}

// Chooses the experts of a row, for the lanes of a warp. `products(e)` is the router's product of expert e,
// and behind the last expert that of the gate of a shared one. `room` is [2, experts] of shared memory.
template <class Products>
__device__ __forceinline__ void choose_row(const choice_args& a, std::size_t row, std::uint32_t lane,
                                           float* room, const Products& products) {
  if (a.pages_at && a.pages_at[row] < 0) {
    for (std::uint32_t i = lane; i < a.how.chosen; i += 32) {
      a.ids[row * a.how.chosen + i] = -1;
      a.weights[row * a.how.chosen + i] = 0;
    }
    if (a.shared && lane == 0) a.shared[row] = 0;
    return;
  }
  auto* ranks = reinterpret_cast<std::uint32_t*>(room + a.how.experts);
  score(a, products, lane, room, ranks);
  choose(a, row, lane, room, ranks);
  if (a.shared && lane == 0) a.shared[row] = 1.0f / (1.0f + expf(-products(a.how.experts)));
}

}  // namespace weir::kernels::cuda
