// sample_steps.h — what both kernels of draws do with a row: its lists, the draw in the order of ids, and the
// logprobs. All threads of a block call a function.
#pragma once

#include "kernels/cuda/draws/sample_cut.h"

namespace weir::kernels::cuda::sampling {

// Applies penalties, then biases, then the mask to the row. Each of the three first keeps in `saved` the
// logits that it changes.
inline __device__ void change_row(const draw_order& o, const std::uint32_t* words, float* saved,
                                  float* logits) {
  for (std::uint32_t i = threadIdx.x; i < o.seen; i += threads) {
    const std::uint32_t at = o.lists_at + o.words_a_seen() * i;
    float& l = logits[words[at]];
    saved[at] = l;
    const bool weighted = o.repetition == 0;
    const float factor = weighted ? __uint_as_float(words[at + 1]) : o.repetition;
    float changed = l > 0 ? l / factor : l * factor;
    if (weighted)
      changed -= __uint_as_float(words[at + 2]);
    else if (words[at + 1] != 0)
      changed -= o.frequency * static_cast<float>(words[at + 1]) + o.presence;
    l = changed;
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.biases; i += threads) {
    const std::uint32_t at = o.biases_at() + 2 * i;
    saved[at] = logits[words[at]];
    logits[words[at]] += __uint_as_float(words[at + 1]);
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.masked; i += threads) {
    const std::uint32_t at = o.masked_at() + i;
    saved[at] = logits[words[at]];
    logits[words[at]] = -INFINITY;
  }
  __syncthreads();
}

// Draws a token in the order of ids: each warp sums the weights of a stretch of ids, then the warp whose
// stretch holds the token finds it. The result is in s.id.
template <class Kept>
__device__ void draw_among(const Kept& k, double uniform, std::uint32_t vocab, room& s) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int stretch = static_cast<int>((vocab + threads - 1) / threads) * 32;
  const int begin = warp * stretch, count = max(0, min(stretch, static_cast<int>(vocab) - begin));
  const auto weight = [&](int i) { return k.weight(static_cast<std::uint32_t>(begin + i)); };
  double sum = 0;
  for (int i = lane; i < count; i += 32) sum += weight(i);
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  __syncthreads();
  if (lane == 0) s.sums[warp] = sum;
  __syncthreads();
  double total = 0, before = 0, before_last = 0;
  for (int w = 0; w < threads / 32; ++w) total += s.sums[w];
  const double target = uniform * total;
  int chosen = -1, last = 0;
  for (int w = 0; w < threads / 32 && chosen < 0; ++w) {
    if (s.sums[w] == 0) continue;
    last = w;
    before_last = before;
    if (before + s.sums[w] > target) chosen = w;
    before += s.sums[w];
  }
  if (warp != (chosen < 0 ? last : chosen)) return;
  const int at = first_beyond<false>(count, target, before_last, lane, weight);
  if (lane == 0 && at >= 0) s.id = begin + at;
}

// Writes to `out`, which is in memory of the host, the logprobs of token `drawn` and of the `wanted`
// likeliest tokens of a row whose largest logit is `top`. The row is as the model computed it.
static __device__ __noinline__ void tell_logprobs(const float* logits, std::uint32_t vocab, float top,
                                                  std::int32_t drawn, std::uint32_t wanted,
                                                  draw_logprobs* out, room& s) {
  double sum = 0;
  for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) sum += weight_of(logits[i], top, 1);
  const double log_sum = top + log(block_total(sum, s));
  const auto logprob = [&](float logit) { return static_cast<float>(logit - log_sum); };
  if (threadIdx.x == 0) out->drawn = {drawn, logprob(logits[drawn])};
  if (wanted > 0) {
    // At so high a temperature every token with a finite logit has a weight: the cut by rank counts them all.
    const kept all{logits, top, 1e38f, 0, 0, {nullptr}};
    const u64 edge = find_edge(all, true, wanted, vocab, s);
    __syncthreads();
    if (threadIdx.x == 0) s.found = 0;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) {
      const u64 key = key_of(logits[i], i);
      if (key >= edge && all.weight(i) > 0) s.candidates[atomicAdd(&s.found, 1u)] = key;
    }
    __syncthreads();
    wanted = s.found;  // fewer, where fewer logits are finite
    if (threadIdx.x < 32 && threadIdx.x >= wanted) s.candidates[threadIdx.x] = 0;
    sort_descending(s.candidates, 32);
    if (threadIdx.x < wanted) {
      const u64 key = s.candidates[threadIdx.x];
      out->likeliest[threadIdx.x] = {static_cast<std::int32_t>(id_of(key)), logprob(logit_of(key))};
    }
  }
  if (threadIdx.x == 0) out->count = wanted;
  // The result that thread 0 writes next tells the host that all of this is there.
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) __threadfence_system();
}

}  // namespace weir::kernels::cuda::sampling
