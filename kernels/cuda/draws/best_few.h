// best_few.h — the best tokens of a row where few of them are kept, as top_k mostly asks: two passes over the
// row, 8 bytes a token, in place of the search for an edge. All threads of a block call a function.
#pragma once

#include "kernels/cuda/draws/sample_cut.h"

namespace weir::kernels::cuda::sampling {

constexpr std::uint32_t most_few = 128;

// Calls f(logit, index) for each token of a row. Each thread has several loads under way at once.
template <class F>
__device__ void each_logit(const float* logits, std::uint32_t count, const F& f) {
  constexpr std::uint32_t ahead = 4;
  const std::uint32_t quads = count % 4 == 0 ? count / 4 : 0;
  for (std::uint32_t first = threadIdx.x; first < quads; first += ahead * threads) {
    float4 v[ahead];
#pragma unroll
    for (std::uint32_t j = 0; j < ahead; ++j) {
      const std::uint32_t i = first + j * threads;
      v[j] = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
      if (i < quads) v[j] = reinterpret_cast<const float4*>(logits)[i];
    }
#pragma unroll
    for (std::uint32_t j = 0; j < ahead; ++j) {
      const std::uint32_t i = (first + j * threads) * 4;
      f(v[j].x, i);
      f(v[j].y, i + 1);
      f(v[j].z, i + 2);
      f(v[j].w, i + 3);
    }
  }
  for (std::uint32_t i = quads * 4 + threadIdx.x; i < count; i += threads) f(logits[i], i);
}

// Puts the keys of the `wanted` best tokens above -inf into s.candidates, best first, and returns how many
// there are. 0: too many tokens are nearly equal, and the caller has to look for the edge.
//
// Each thread finds its best token. The largest bound that `wanted` of these reach is reached by at least as
// many tokens of the row, and by few more: these are gathered and sorted.
// REQUIRES: 0 < wanted <= most_few; a token is allowed and above -inf
inline __device__ std::uint32_t best_few(const float* logits, std::uint32_t count, std::uint32_t wanted,
                                         allowed_tokens allowed, room& s) {
  const auto order_of = [](float l) { return static_cast<std::uint32_t>(key_of(l, 0) >> 32); };
  std::uint32_t best = 0;
  each_logit(logits, count, [&](float l, std::uint32_t i) {
    if (!(l > -INFINITY)) return;
    const std::uint32_t order = order_of(l);
    if (order > best && allowed.has(i)) best = order;
  });
  std::uint32_t bound = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const std::uint32_t next = bound | 1u << bit;
    if (static_cast<std::uint32_t>(__syncthreads_count(best >= next)) >= wanted) bound = next;
  }
  if (threadIdx.x == 0) s.found = 0;
  __syncthreads();
  each_logit(logits, count, [&](float l, std::uint32_t i) {
    if (!(l > -INFINITY) || order_of(l) < bound || !allowed.has(i)) return;
    const std::uint32_t at = atomicAdd(&s.found, 1u);
    if (at < most_candidates) s.candidates[at] = key_of(l, i);
  });
  __syncthreads();
  const std::uint32_t found = s.found;
  if (found > most_candidates) return 0;
  std::uint32_t size = most_few;
  while (size < found) size *= 2;
  for (std::uint32_t i = found + threadIdx.x; i < size; i += threads) s.candidates[i] = 0;
  sort_descending(s.candidates, static_cast<int>(size));
  return min(found, wanted);
}

// A key whose larger values are lower ids, and back.
inline __device__ u64 turned(u64 key) { return key << 32 | key >> 32; }

// Sorts the first `count` of s.candidates by id, the lowest first, as turned() has them. The others become 0.
// REQUIRES: count <= most_few
inline __device__ void sort_by_id(std::uint32_t count, room& s) {
  __syncthreads();
  if (threadIdx.x < most_few)
    s.candidates[threadIdx.x] = threadIdx.x < count ? turned(s.candidates[threadIdx.x]) : 0;
  sort_descending(s.candidates, most_few);
}

// The rest of a draw behind best_few(), which gave `count` tokens: the cuts, and the draw in the order of
// ids. The result is in s.id.
inline __device__ void draw_among_few(const draw_numbers& o, float top, std::uint32_t count, room& s) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const auto weight_by = [&](u64 key) { return weight_of(logit_of(key), top, o.temperature); };
  const auto total_of = [&](int n, const auto& weight) {
    double sum = 0;
    for (int i = lane; i < n; i += 32) sum += weight(i);
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    return sum;
  };
  if (threadIdx.x < 32) {
    int n = static_cast<int>(count);
    const auto weight = [&](int i) { return weight_by(s.candidates[i]); };
    if (o.top_p < 1) {
      double before = 0;
      const double wanted = static_cast<double>(o.top_p) * total_of(n, weight);
      const int last = first_beyond<true>(n, wanted, before, lane, weight);
      n = last < 0 ? 1 : last + 1;
    }
    int likely = 0;
    for (int i = lane; i - lane < n; i += 32)
      likely += __popc(__ballot_sync(~0u, i < n && weight(i) >= o.min_p));
    if (lane == 0) s.found = static_cast<std::uint32_t>(max(likely, 1));
  }
  __syncthreads();
  const std::uint32_t left = s.found;
  sort_by_id(left, s);
  if (threadIdx.x >= 32) return;
  const auto weight = [&](int i) { return weight_by(turned(s.candidates[i])); };
  const auto n = static_cast<int>(left);
  double before = 0;
  const int at = first_beyond<false>(n, o.uniform * total_of(n, weight), before, lane, weight);
  if (lane == 0 && at >= 0) s.id = static_cast<std::int32_t>(id_of(turned(s.candidates[at])));
}

}  // namespace weir::kernels::cuda::sampling
