// sample_keys.h — logits of a row as keys that order tokens, and the best key of a row. The functions are
// called by all threads of a block of sample.cu, except those that name a warp.
#pragma once

#include <cstdint>

#include "kernels/cuda/draws/sample.h"

namespace weir::kernels::cuda::sampling {

// threads: of a block. bins: of the histograms by which find_edge() looks for a cut. most_candidates: tokens
// that are sorted.
constexpr int threads = 1024, most_candidates = 2048, bins = 512;
constexpr float bins_a_logit = 8;  // coarse bins for each unit of a logit
constexpr float smallest_weight = 1e-37f;

using u64 = unsigned long long;

// Larger keys are better candidates: a larger logit, then a lower id.
inline __device__ u64 key_of(float logit, std::uint32_t id) {
  const std::uint32_t bits = __float_as_uint(logit + 0.0f);  // -0 ties with 0
  const std::uint32_t order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<u64>(order) << 32 | ~id;
}
inline __device__ std::uint32_t id_of(u64 key) { return ~static_cast<std::uint32_t>(key); }
inline __device__ float logit_of(u64 key) {
  const auto order = static_cast<std::uint32_t>(key >> 32);
  return __uint_as_float(order & 0x80000000u ? order & 0x7fffffffu : ~order);
}

inline __device__ float weight_of(float logit, float top, float temperature) {
  const float w = expf((logit - top) / temperature);
  return w >= smallest_weight ? w : 0.0f;
}

// The shared memory of a block.
struct room {
  // The words of a draw_order, which has a constructor: shared memory runs none.
  alignas(draw_order) std::uint32_t order[sizeof(draw_order) / 4];
  u64 candidates[most_candidates];
  std::uint32_t counts[bins];
  std::uint32_t low[bins], high[bins];  // sums of weights in units of 2^-28, in two halves
  double sums[32];
  u64 keys[32];
  std::uint32_t found;
  int bin;
  double above;  // the sum of the weights, or the count, of the tokens better than the bin
  u64 edge;
  std::int32_t id;
};

// The tokens that can be drawn: bit id % 32 of word id / 32, in memory of the device; null: all can.
struct allowed_tokens {
  const std::uint32_t* words;

  __device__ bool has(std::uint32_t id) const { return !words || (words[id / 32] >> (id % 32) & 1) != 0; }
};

// The best key among the allowed tokens of a row whose logits are sound; 0 where all allowed logits are -inf.
inline __device__ u64 best_allowed(const float* logits, std::uint32_t vocab, allowed_tokens allowed,
                                   room& s) {
  u64 best = 0;
  for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) {
    const float l = logits[i];
    if (!allowed.has(i) || !(l > -INFINITY)) continue;
    const u64 key = key_of(l, i);
    best = key > best ? key : best;
  }
  for (int o = 16; o; o >>= 1) {
    const u64 other = __shfl_xor_sync(~0u, best, o);
    best = other > best ? other : best;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) s.keys[threadIdx.x / 32] = best;
  __syncthreads();
  best = 0;
  for (int w = 0; w < threads / 32; ++w) best = s.keys[w] > best ? s.keys[w] : best;
  __syncthreads();
  return best;
}

// The best key of the row; 0 where the row has no finite maximum, or holds a NaN or +inf.
inline __device__ u64 best_of(const float* logits, std::uint32_t vocab, room& s) {
  float top = -INFINITY;
  std::uint32_t at = 0;
  bool sound = true;
  const auto look = [&](float l, std::uint32_t i) {  // a thread sees its ids in rising order
    sound &= l <= 3.4028234e38f;
    at = l > top ? i : at;
    top = l > top ? l : top;
  };
  // Each thread has several loads under way at once, because their latency takes most of the time.
  constexpr std::uint32_t ahead = 8;
  const std::uint32_t quads = vocab % 4 == 0 ? vocab / 4 : 0;
  for (std::uint32_t first = 0; first < quads; first += ahead * threads) {
    float4 v[ahead];
#pragma unroll
    for (std::uint32_t j = 0; j < ahead; ++j) {
      const std::uint32_t i = first + j * threads + threadIdx.x;
      v[j] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
      if (i < quads) v[j] = reinterpret_cast<const float4*>(logits)[i];
    }
#pragma unroll
    for (std::uint32_t j = 0; j < ahead; ++j) {
      const std::uint32_t i = (first + j * threads + threadIdx.x) * 4;
      look(v[j].x, i);
      look(v[j].y, i + 1);
      look(v[j].z, i + 2);
      look(v[j].w, i + 3);
    }
  }
  for (std::uint32_t i = quads * 4 + threadIdx.x; i < vocab; i += threads) look(logits[i], i);
  u64 best = key_of(top, at);
  for (int o = 16; o; o >>= 1) {
    const u64 other = __shfl_xor_sync(~0u, best, o);
    best = other > best ? other : best;
  }
  sound = __syncthreads_and(sound);
  if (threadIdx.x % 32 == 0) s.keys[threadIdx.x / 32] = best;
  __syncthreads();
  best = 0;
  for (int w = 0; w < threads / 32; ++w) best = s.keys[w] > best ? s.keys[w] : best;
  __syncthreads();
  return sound && logit_of(best) > -INFINITY ? best : 0;
}

}  // namespace weir::kernels::cuda::sampling
