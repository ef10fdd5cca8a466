#include "kernels/cuda/sample.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/warp.h"

namespace weir::kernels::cuda {
namespace {

// bins: of the histograms by which find_edge() looks for a cut. most_candidates: tokens that are sorted.
constexpr int threads = 1024, most_candidates = 2048, bins = 512;
constexpr float bins_a_logit = 8;  // coarse bins for each unit of a logit
constexpr float smallest_weight = 1e-37f;

static_assert(sizeof(decoder_result) == sizeof(int2));
static_assert(sizeof(draw_order) == 64);  // one cache line of the host, which is slow to read

using u64 = unsigned long long;

// Larger keys are better candidates: a larger logit, then a lower id.
__device__ u64 key_of(float logit, std::uint32_t id) {
  const std::uint32_t bits = __float_as_uint(logit + 0.0f);  // -0 ties with 0
  const std::uint32_t order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<u64>(order) << 32 | ~id;
}
__device__ std::uint32_t id_of(u64 key) { return ~static_cast<std::uint32_t>(key); }
__device__ float logit_of(u64 key) {
  const auto order = static_cast<std::uint32_t>(key >> 32);
  return __uint_as_float(order & 0x80000000u ? order & 0x7fffffffu : ~order);
}

__device__ float weight_of(float logit, float top, float temperature) {
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
__device__ u64 best_allowed(const float* logits, std::uint32_t vocab, allowed_tokens allowed, room& s) {
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
__device__ u64 best_of(const float* logits, std::uint32_t vocab, room& s) {
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

// Called by one warp. Returns the index of the first of `count` items, in order, at which the running sum of
// weight(i) exceeds `target` (or reaches it, where `reaches`). Where there is none, returns the last item
// whose weight is not 0, or -1. `sum` is the running sum before the first item; the function adds 32 items at
// a time to it, up to those that hold the result.
template <bool reaches, class Weight>
__device__ int first_beyond(int count, double target, double& sum, int lane, Weight weight) {
  int last = -1;
  for (int base = 0; base < count; base += 32) {
    const int i = base + lane;
    const double w = i < count ? static_cast<double>(weight(i)) : 0.0;
    double running = w;
    for (int o = 1; o < 32; o *= 2) {
      const double below = __shfl_up_sync(~0u, running, o);
      if (lane >= o) running += below;
    }
    running += sum;
    const bool beyond = w > 0 && (reaches ? running >= target : running > target);
    const unsigned hits = __ballot_sync(~0u, beyond), any = __ballot_sync(~0u, w > 0);
    if (hits) return base + __ffs(static_cast<int>(hits)) - 1;
    if (any) last = base + 31 - __clz(static_cast<int>(any));
    sum = __shfl_sync(~0u, running, 31);
  }
  return last;
}

// The sum of one value of each thread of the block; every thread gets it.
__device__ double block_total(double v, room& s) {
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  __syncthreads();
  if (threadIdx.x % 32 == 0) s.sums[threadIdx.x / 32] = v;
  __syncthreads();
  double total = 0;
  for (int w = 0; w < threads / 32; ++w) total += s.sums[w];
  return total;
}

// The tokens that a draw keeps: those that are allowed, whose key is at least `edge`, and whose weight is at
// least `least`.
struct kept {
  const float* logits;
  float top, temperature, least;
  u64 edge;
  allowed_tokens allowed;

  __device__ float weight(std::uint32_t i) const {
    const float w = weight_of(logits[i], top, temperature);
    const bool in = w >= least && (edge == 0 || key_of(logits[i], i) >= edge) && allowed.has(i);
    return in ? w : 0.0f;
  }
};

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

// Sorts by a bitonic network. REQUIRES: `count` is a power of two
__device__ void sort_descending(u64* keys, int count) {
  for (int size = 2; size <= count; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) {
        const int other = i ^ step;
        if (other <= i) continue;
        const bool descending = (i & size) == 0;
        if ((keys[i] < keys[other]) == descending) {
          const u64 held = keys[i];
          keys[i] = keys[other];
          keys[other] = held;
        }
      }
    }
  __syncthreads();
}

// The bin of a logit, by its distance from the largest one. Coarse bins cover all logits; fine bins divide
// one coarse bin.
struct binning {
  float top;
  int inside;  // the coarse bin that fine bins divide; -1: the bins are coarse

  __device__ int operator()(float logit) const {
    const float distance = (top - logit) * bins_a_logit;
    const float coarse = fminf(floorf(distance), bins - 1.0f);
    if (inside < 0) return static_cast<int>(coarse);
    if (static_cast<int>(coarse) != inside) return -1;
    return static_cast<int>(fminf((distance - coarse) * bins, bins - 1.0f));
  }
};

// Finds the bin in which the running count of kept tokens (`by_rank`) or the running sum of their weights
// reaches `wanted`; the running value begins at `above`. Sets s.bin to the bin, and s.above to the running
// value before it.
__device__ void find_bin(const kept& k, const binning& bin_of, bool by_rank, double wanted, double above,
                         std::uint32_t vocab, room& s) {
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < bins; i += threads) s.counts[i] = s.low[i] = s.high[i] = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) {
    const float w = k.weight(i);
    const int bin = w > 0 ? bin_of(k.logits[i]) : -1;
    if (bin < 0) continue;
    atomicAdd(&s.counts[bin], 1u);
    if (by_rank) continue;
    const auto units = static_cast<std::uint32_t>(w * 0x1p28f);
    atomicAdd(&s.low[bin], units & 0x3fffu);
    atomicAdd(&s.high[bin], units >> 14);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    s.bin = -1;
    for (int b = 0; b < bins; ++b) {
      if (s.counts[b] == 0) continue;
      const double more = by_rank ? s.counts[b] : (s.high[b] * 16384.0 + s.low[b]) * 0x1p-28;
      s.bin = b;
      s.above = above;
      if (above + more >= wanted) break;
      above += more;
    }
  }
  __syncthreads();
}

// The key that find_edge() looks for, where more tokens have nearly the same logit than are sorted: digit by
// digit of 8 bits, the highest digit first. `among` selects the logits in question; `above` is the running
// value before all of them.
template <class Among>
__device__ u64 find_edge_by_digits(const kept& k, bool by_rank, double wanted, double above,
                                   std::uint32_t vocab, const Among& among, room& s) {
  constexpr int digits = 256;
  // Counts, or weights in units of 2^-44: sums of integers do not depend on the order.
  u64* sums = s.candidates;
  u64 edge = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < digits; i += threads) s.counts[i] = 0, sums[i] = 0;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) {
      const float w = k.weight(i);
      if (w == 0 || !among(k.logits[i])) continue;
      const u64 key = key_of(k.logits[i], i);
      if (shift < 56 && key >> (shift + 8) != edge) continue;
      const int digit = static_cast<int>(key >> shift & (digits - 1));
      atomicAdd(&s.counts[digit], 1u);
      atomicAdd(&sums[digit], by_rank ? 1ull : static_cast<u64>(w * 0x1p44f));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int digit = digits - 1; digit >= 0; --digit) {
        if (s.counts[digit] == 0) continue;
        const double more = static_cast<double>(sums[digit]) * (by_rank ? 1.0 : 0x1p-44);
        s.bin = digit;
        s.above = above;
        if (above + more >= wanted) break;
        above += more;
      }
    }
    __syncthreads();
    edge = edge << 8 | static_cast<u64>(s.bin);
    above = s.above;
  }
  return edge;
}

// The key of the last token that a cut keeps, among the tokens that are kept so far: the token of rank
// `wanted` (`by_rank`), or the first one at which the running sum of weights, best first, reaches `wanted`.
__device__ u64 find_edge(const kept& k, bool by_rank, double wanted, std::uint32_t vocab, room& s) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const binning all{k.top, -1};
  find_bin(k, all, by_rank, wanted, 0, vocab, s);
  const int coarse = s.bin;
  const double before_coarse = s.above;
  const binning fine{k.top, coarse};
  find_bin(k, fine, by_rank, wanted, before_coarse, vocab, s);
  const int bin = s.bin;
  if (threadIdx.x == 0) s.found = 0;
  __syncthreads();
  double above = 0;
  for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) {
    const float w = k.weight(i);
    if (w == 0) continue;
    const int here = fine(k.logits[i]);
    if (here >= 0 ? here < bin : all(k.logits[i]) < coarse) above += by_rank ? 1.0 : w;
    if (here != bin) continue;
    const std::uint32_t at = atomicAdd(&s.found, 1u);
    if (at < most_candidates) s.candidates[at] = key_of(k.logits[i], i);
  }
  above = block_total(above, s);
  const int found = static_cast<int>(s.found);
  if (found > most_candidates)
    return find_edge_by_digits(k, by_rank, wanted, above, vocab, [&](float l) { return fine(l) == bin; }, s);
  int size = 32;
  while (size < found) size *= 2;
  for (int i = found + static_cast<int>(threadIdx.x); i < size; i += threads) s.candidates[i] = 0;
  sort_descending(s.candidates, size);
  if (threadIdx.x < 32) {
    const auto weight = [&](int i) {
      return by_rank ? 1.0f : weight_of(logit_of(s.candidates[i]), k.top, k.temperature);
    };
    const int at = first_beyond<true>(found, wanted, above, lane, weight);
    if (lane == 0) s.edge = s.candidates[at < 0 ? 0 : at];
  }
  __syncthreads();
  return s.edge;
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
  decoder_result result{-1, draw_state::fault};
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
