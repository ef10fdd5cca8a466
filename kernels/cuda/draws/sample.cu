#include "kernels/cuda/draws/sample.h"

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/draws/sample_cut.h"

namespace weir::kernels::cuda {
namespace {

using namespace sampling;

static_assert(sizeof(decoder_result) == sizeof(int2));
static_assert(sizeof(draw_order) == 64);  // one cache line of the host, which is slow to read

// Applies penalties, then biases, then the mask to the row. Each of the three first keeps in `saved` the
// logits that it changes.
__device__ void change_row(const draw_order& o, const std::uint32_t* words, float* saved, float* logits) {
  for (std::uint32_t i = threadIdx.x; i < o.seen; i += threads) {
    const std::uint32_t at = o.lists_at + 2 * i;
    float& l = logits[words[at]];
    saved[at] = l;
    float changed = l > 0 ? l / o.repetition : l * o.repetition;
    if (words[at + 1] != 0) changed -= o.frequency * static_cast<float>(words[at + 1]) + o.presence;
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

// Puts the old logits back, in the opposite order, because a token may be in several lists.
__device__ void restore_row(const draw_order& o, const std::uint32_t* words, const float* saved,
                            float* logits) {
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.masked; i += threads)
    logits[words[o.masked_at() + i]] = saved[o.masked_at() + i];
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.biases; i += threads)
    logits[words[o.biases_at() + 2 * i]] = saved[o.biases_at() + 2 * i];
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.seen; i += threads)
    logits[words[o.lists_at + 2 * i]] = saved[o.lists_at + 2 * i];
}

// Draws a token in the order of ids: each warp sums the weights of a stretch of ids, then the warp whose
// stretch holds the token finds it. The result is in s.id.
__device__ void draw_among(const kept& k, double uniform, std::uint32_t vocab, room& s) {
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

// Applies the cuts, then draws a token among those that are kept.
__device__ void draw(const draw_order& o, const float* logits, std::uint32_t vocab, float top,
                     allowed_tokens allowed, room& s) {
  kept k{logits, top, o.temperature, 0, 0, allowed};
  if (o.top_k > 0 && o.top_k < vocab) {
    k.edge = find_edge(k, true, o.top_k, vocab, s);
  }
  if (o.top_p < 1) {
    double sum = 0;
    for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) sum += k.weight(i);
    const double total = block_total(sum, s);
    k.edge = find_edge(k, false, static_cast<double>(o.top_p) * total, vocab, s);
  }
  k.least = o.min_p;
  draw_among(k, o.uniform, vocab, s);
}

// Writes to `out`, which is in memory of the host, the logprobs of token `drawn` and of the `wanted`
// likeliest tokens of a row whose largest logit is `top`. The row is as the model computed it.
__device__ __noinline__ void tell_logprobs(const float* logits, std::uint32_t vocab, float top,
                                           std::int32_t drawn, std::uint32_t wanted, draw_logprobs* out,
                                           room& s) {
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

__global__ void __launch_bounds__(threads)
    sample_kernel(const draw_order* draws, const std::uint32_t* words, float* saved, float* all_logits,
                  std::uint32_t vocab, decoder_result* out, draw_logprobs* logprobs, std::int32_t* ids) {
  __shared__ room s;
  let_next_start();
  // The order is in pinned memory of the host. Reads of one of its cache lines wait for one another, about 2
  // us each: one warp therefore reads the whole order at once, and no other warp reads it.
  const auto* order = reinterpret_cast<const std::uint32_t*>(draws + blockIdx.x);
  if (threadIdx.x < sizeof(draw_order) / 4) s.order[threadIdx.x] = __ldcv(order + threadIdx.x);
  __syncthreads();
  const draw_order& o = *reinterpret_cast<const draw_order*>(s.order);
  if (o.row == no_draw) return;
  float* logits = all_logits + std::size_t{o.row} * vocab;
  const bool changes = o.seen + o.biases + o.masked > 0;
  const u64 raw_best = best_of(logits, vocab, s);
  u64 best = raw_best;
  if (best && changes) {
    change_row(o, words, saved, logits);
    best = best_of(logits, vocab, s);
  }
  const allowed_tokens allowed{o.allowed_words > 0 ? words + o.allowed_at() : nullptr};
  if (best && allowed.words) best = best_allowed(logits, vocab, allowed, s);
  decoder_result result{-1, raw_best ? draw_state::nothing_left : draw_state::fault};
  if (best) {
    const float top = logit_of(best);
    if (threadIdx.x == 0) s.id = static_cast<std::int32_t>(id_of(best));
    __syncthreads();
    if (o.temperature > 0) draw(o, logits, vocab, top, allowed, s);
    __syncthreads();
    result = {s.id, draw_state::drawn};
  }
  if (changes && raw_best) restore_row(o, words, saved, logits);
  if (o.top_logprobs >= 0 && best) {
    __syncthreads();
    tell_logprobs(logits, vocab, logit_of(raw_best), result.id, static_cast<std::uint32_t>(o.top_logprobs),
                  logprobs + blockIdx.x, s);
  }
  if (threadIdx.x == 0) {
    __stwt(reinterpret_cast<int2*>(out) + blockIdx.x, make_int2(result.id, static_cast<int>(result.state)));
    ids[blockIdx.x] = best ? result.id : 0;
  }
}

}  // namespace

void sample_rows(device& d, const draw_order* draws, std::uint32_t count, const std::uint32_t* words,
                 float* saved, float* logits, std::uint32_t vocab, decoder_result* out,
                 draw_logprobs* logprobs, std::int32_t* ids) {
  launch_after_all(d, sample_kernel, dim3(count), threads, draws, words, saved, logits, vocab, out, logprobs,
                   ids);
}

}  // namespace weir::kernels::cuda
