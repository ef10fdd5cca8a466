// rare_row.h — the copy of a row that a rare draw (rare.h) changes and shortens, and the loops over it. All
// threads of a block call a function.
//
// What a cut drops has the logit -inf. A weight is exp(l - top), 0 below 1e-37; `top` is the largest logit of
// the time when the temperature was applied, so that a cut that drops the best token changes no weight.
#pragma once

#include "kernels/cuda/draws/best_few.h"

namespace weir::kernels::cuda::sampling {

struct rare_row {
  static constexpr bool fine_sums = true;

  float* values;                       // [count] logits
  std::uint32_t count;                 // of the vocabulary at first
  float top = 0;                       // weights are relative to it
  const std::uint32_t* ids = nullptr;  // [count] rising token ids; null: an index is an id
  float *spare, *other;                // [count] each: room for two arrays more

  __device__ float logit(std::uint32_t i) const { return values[i]; }
  __device__ float weight(std::uint32_t i) const { return weight_of(values[i], top, 1); }
  __device__ float weight_by(u64 key) const { return weight(id_of(key)); }
  __device__ std::uint32_t token(std::uint32_t i) const { return ids ? ids[i] : i; }
};

// Calls f(i) for each token of the row. Several loads of a thread are under way at once.
template <class F>
__device__ void each_of(const rare_row& r, const F& f) {
#pragma unroll 8
  for (std::uint32_t i = threadIdx.x; i < r.count; i += threads) f(i);
}

// The sum of f(i) over the row; every thread gets it.
template <class F>
__device__ double sum_over(const rare_row& r, room& s, const F& f) {
  double sum = 0;
  each_of(r, [&](std::uint32_t i) { sum += f(i); });
  return block_total(sum, s);
}

inline __device__ double total_weight(const rare_row& r, room& s) {
  double sum = 0;
  each_logit(r.values, r.count, [&](float l, std::uint32_t) { sum += weight_of(l, r.top, 1); });
  return block_total(sum, s);
}

// Drops the tokens of which drops(i) is true.
template <class F>
__device__ void drop_where(const rare_row& r, const F& drops) {
  __syncthreads();
  each_of(r, [&](std::uint32_t i) {
    if (drops(i)) r.values[i] = -INFINITY;
  });
  __syncthreads();
}

// The largest, or the smallest, of one key of each thread; every thread gets it.
template <bool largest>
__device__ u64 extreme_key(u64 key, room& s) {
  const auto of = [](u64 a, u64 b) { return (a > b) == largest ? a : b; };
  for (int o = 16; o; o >>= 1) key = of(key, __shfl_xor_sync(~0u, key, o));
  __syncthreads();
  if (threadIdx.x % 32 == 0) s.keys[threadIdx.x / 32] = key;
  __syncthreads();
  key = s.keys[0];
  for (int w = 1; w < threads / 32; ++w) key = of(key, s.keys[w]);
  __syncthreads();
  return key;
}

// Keeps the `rank` best tokens.
inline __device__ void keep_ranks(const rare_row& r, double rank, room& s) {
  const u64 edge = find_edge(r, true, rank, r.count, s);
  drop_where(r, [&](std::uint32_t i) { return key_of(r.values[i], i) < edge; });
}

// Makes the row its `rank` best tokens, in the order of their ids; `own` is room for two arrays more from
// then on. False: too many are nearly equal, and nothing has changed. REQUIRES: 0 < rank <= most_few; the row
// has not been shortened.
inline __device__ bool keep_few(rare_row& r, float* own, std::uint32_t rank, room& s) {
  const std::uint32_t found = best_few(r.values, r.count, rank, {nullptr}, s);
  if (found == 0) return false;
  sort_by_id(found, s);
  auto* ids = reinterpret_cast<std::uint32_t*>(r.other);
  if (threadIdx.x < found) {
    const u64 key = turned(s.candidates[threadIdx.x]);
    r.spare[threadIdx.x] = logit_of(key);
    ids[threadIdx.x] = id_of(key);
  }
  __syncthreads();
  r.values = r.spare;
  r.ids = ids;
  r.spare = own;
  r.other = own + found;
  r.count = found;
  return true;
}

// Shortens the row to its tokens with a weight, in their order, where these are at most half of it. It is
// done once at most.
inline __device__ void shorten(rare_row& r, room& s) {
  if (r.ids) return;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const std::uint32_t stretch = (r.count + threads - 1) / threads * 32;
  const std::uint32_t begin = min(r.count, warp * stretch), end = min(r.count, begin + stretch);
  const auto there = [&](std::uint32_t i) { return __ballot_sync(~0u, i < end && r.weight(i) > 0); };
  std::uint32_t mine = 0;
  for (std::uint32_t i = begin; i < end; i += 32) mine += __popc(there(i + lane));
  __syncthreads();
  if (lane == 0) s.counts[warp] = mine;
  __syncthreads();
  std::uint32_t at = 0, all = 0;
  for (int w = 0; w < threads / 32; ++w) {
    at += w < warp ? s.counts[w] : 0;
    all += s.counts[w];
  }
  if (all > r.count / 2) return;
  auto* ids = reinterpret_cast<std::uint32_t*>(r.other);
  for (std::uint32_t i = begin; i < end; i += 32) {
    const unsigned found = there(i + lane);
    if (found >> lane & 1) {
      const std::uint32_t to = at + __popc(found & ((1u << lane) - 1));
      r.spare[to] = r.values[i + lane];
      ids[to] = i + lane;
    }
    at += __popc(found);
  }
  __syncthreads();
  float* const old = r.values;  // has room for twice as many
  r.values = r.spare;
  r.ids = ids;
  r.spare = old;
  r.other = old + all;
  r.count = all;
}

}  // namespace weir::kernels::cuda::sampling
