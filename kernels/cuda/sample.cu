#include "kernels/cuda/sample.h"

#include "kernels/cuda/launch.h"
#include "kernels/cuda/warp.h"

namespace weir::kernels::cuda {
namespace {

constexpr int threads = 1024, most_candidates = 4096, bins = 512;
constexpr float bins_a_logit = 8;
constexpr float smallest_weight = 1e-37f;

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

struct room {
  u64 candidates[most_candidates];
  std::uint32_t counts[bins];
  float masses[bins];
  double sums[32];
  u64 keys[32];
  std::uint32_t found;
  int bound;
  int kept;
  bool decided;
  std::int32_t id;
};

// The best key of the row; 0 where it has no finite maximum, or holds a NaN or +inf.
__device__ u64 best_of(const float* logits, std::uint32_t vocab, room& s) {
  u64 best = 0;
  bool sound = true;
  for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) {
    const float l = logits[i];
    sound &= l <= 3.4028234e38f;
    const u64 key = key_of(l, i);
    best = key > best ? key : best;
  }
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

// Penalties, bias, mask, each on what the one before left; or all of it back, in the other order.
__device__ void change_row(const draw_order& o, const std::uint32_t* words, float* saved, float* logits) {
  for (std::uint32_t i = threadIdx.x; i < o.seen; i += threads) {
    const std::uint32_t at = o.seen_at + 2 * i;
    float& l = logits[words[at]];
    saved[at] = l;
    float changed = l > 0 ? l / o.repetition : l * o.repetition;
    if (words[at + 1] != 0) changed -= o.frequency * static_cast<float>(words[at + 1]) + o.presence;
    l = changed;
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.biases; i += threads) {
    const std::uint32_t at = o.bias_at + 2 * i;
    saved[at] = logits[words[at]];
    logits[words[at]] += __uint_as_float(words[at + 1]);
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.masked; i += threads) {
    const std::uint32_t at = o.masked_at + i;
    saved[at] = logits[words[at]];
    logits[words[at]] = -INFINITY;
  }
  __syncthreads();
}

__device__ void restore_row(const draw_order& o, const std::uint32_t* words, const float* saved,
                            float* logits) {
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.masked; i += threads)
    logits[words[o.masked_at + i]] = saved[o.masked_at + i];
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.biases; i += threads)
    logits[words[o.bias_at + 2 * i]] = saved[o.bias_at + 2 * i];
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < o.seen; i += threads)
    logits[words[o.seen_at + 2 * i]] = saved[o.seen_at + 2 * i];
}

// By one warp: the first of `count` items, in order, at which the running sum of weight(i) exceeds `target`
// (or reaches it); the last item of any weight where none does. `sum` gets the sum so far.
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

// Over the whole vocabulary, without a cut but min_p: each warp sums a stretch of ids, then one walks its
// own.
__device__ void draw_from_all(const draw_order& o, const float* logits, std::uint32_t vocab, float top,
                              room& s) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int stretch = static_cast<int>((vocab + threads - 1) / threads) * 32;
  const int begin = warp * stretch, count = max(0, min(stretch, static_cast<int>(vocab) - begin));
  const auto weight = [&](int i) {
    const float w = weight_of(logits[begin + i], top, o.temperature);
    return w >= o.min_p ? w : 0.0f;
  };
  double sum = 0;
  for (int i = lane; i < count; i += 32) sum += weight(i);
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  if (lane == 0) s.sums[warp] = sum;
  __syncthreads();
  double total = 0, before = 0;
  for (int w = 0; w < threads / 32; ++w) total += s.sums[w];
  const double target = o.uniform * total;
  int chosen = -1, last = 0;
  for (int w = 0; w < threads / 32 && chosen < 0; ++w) {
    if (s.sums[w] == 0) continue;
    last = w;
    if (before + s.sums[w] > target)
      chosen = w;
    else
      before += s.sums[w];
  }
  if (chosen < 0) {
    chosen = last;
    before -= s.sums[last];
  }
  if (warp != chosen) return;
  const int at = first_beyond<false>(count, target, before, lane, weight);
  if (lane == 0) {
    s.id = begin + at;
    s.decided = at >= 0;
  }
}

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

// Ranks the candidates that a cut could keep, cuts, and draws among what stays, in order of ids.
__device__ void draw_from_best(const draw_order& o, const float* logits, std::uint32_t vocab, float top,
                               room& s) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  for (int i = static_cast<int>(threadIdx.x); i < bins; i += threads) {
    s.counts[i] = 0;
    s.masses[i] = 0;
  }
  if (threadIdx.x == 0) s.found = 0;
  __syncthreads();
  const auto bin_of = [&](float l) { return static_cast<int>(fminf((top - l) * bins_a_logit, bins - 1.0f)); };
  double sum = 0;
  for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) {
    const float w = weight_of(logits[i], top, o.temperature);
    if (w == 0) continue;
    sum += w;
    const int bin = bin_of(logits[i]);
    atomicAdd(&s.counts[bin], 1u);
    atomicAdd(&s.masses[bin], w);
  }
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  if (lane == 0) s.sums[warp] = sum;
  __syncthreads();
  double total = 0;
  for (int w = 0; w < threads / 32; ++w) total += s.sums[w];
  const bool by_rank = o.top_k > 0 && o.top_k < vocab;
  if (threadIdx.x == 0) {
    std::uint32_t count = 0, all = 0;
    double mass = 0;
    s.bound = -1;
    for (int b = 0; b < bins; ++b) all += s.counts[b];
    for (int b = 0; b < bins; ++b) {
      if (count + s.counts[b] > most_candidates) break;
      count += s.counts[b];
      mass += s.masses[b];
      s.bound = b;
      if (by_rank ? count >= o.top_k : mass >= static_cast<double>(o.top_p) * total * 1.0001) break;
    }
    s.decided =
        count == all || (by_rank ? count >= o.top_k : mass >= static_cast<double>(o.top_p) * total * 1.0001);
  }
  __syncthreads();
  if (!s.decided) return;
  for (std::uint32_t i = threadIdx.x; i < vocab; i += threads)
    if (weight_of(logits[i], top, o.temperature) > 0 && bin_of(logits[i]) <= s.bound)
      s.candidates[atomicAdd(&s.found, 1u)] = key_of(logits[i], i);
  __syncthreads();
  const int found = static_cast<int>(s.found);
  int size = 32;
  while (size < found) size *= 2;
  for (int i = found + static_cast<int>(threadIdx.x); i < size; i += threads) s.candidates[i] = 0;
  sort_descending(s.candidates, size);

  const auto weight = [&](int i) { return weight_of(logit_of(s.candidates[i]), top, o.temperature); };
  if (warp == 0) {
    int kept = by_rank ? min(found, static_cast<int>(o.top_k)) : found;
    if (o.top_p < 1) {
      double of = total, running = 0;
      if (by_rank) {
        of = 0;
        (void)first_beyond<false>(kept, INFINITY, of, lane, weight);
      }
      kept = first_beyond<true>(kept, static_cast<double>(o.top_p) * of, running, lane, weight) + 1;
    }
    if (o.min_p > 0)
      while (kept > 1 && weight(kept - 1) < o.min_p) --kept;
    if (lane == 0) s.kept = kept;
  }
  __syncthreads();
  // By id from here: the key's lower half above its upper one.
  for (int i = static_cast<int>(threadIdx.x); i < size; i += threads) {
    const u64 key = s.candidates[i];
    s.candidates[i] = i < s.kept ? key << 32 | key >> 32 : 0;
  }
  sort_descending(s.candidates, size);
  if (warp != 0) return;
  const auto turned = [&](int i) {
    const u64 key = s.candidates[i];
    return weight_of(logit_of(key << 32 | key >> 32), top, o.temperature);
  };
  double of = 0, running = 0;
  (void)first_beyond<false>(s.kept, INFINITY, of, lane, turned);
  const int at = first_beyond<false>(s.kept, o.uniform * of, running, lane, turned);
  if (lane == 0) {
    const u64 key = s.candidates[at];
    s.id = static_cast<std::int32_t>(id_of(key << 32 | key >> 32));
  }
}

__global__ void __launch_bounds__(threads)
    sample_kernel(const draw_order* draws, const std::uint32_t* words, float* saved, float* all_logits,
                  std::uint32_t vocab, decoder_result* out) {
  __shared__ room s;
  wait_for_previous();
  let_next_start();
  const draw_order o = draws[blockIdx.x];
  float* logits = all_logits + std::size_t{o.row} * vocab;
  const bool changes = o.seen + o.biases + o.masked > 0;
  u64 best = best_of(logits, vocab, s);
  if (best && changes) {
    change_row(o, words, saved, logits);
    best = best_of(logits, vocab, s);
  }
  decoder_result result{-1, draw_state::fault};
  if (best) {
    const float top = logit_of(best);
    if (threadIdx.x == 0) {
      s.id = static_cast<std::int32_t>(id_of(best));
      s.decided = true;
    }
    __syncthreads();
    if (o.temperature > 0) {
      if (o.top_p < 1 || (o.top_k > 0 && o.top_k < vocab))
        draw_from_best(o, logits, vocab, top, s);
      else
        draw_from_all(o, logits, vocab, top, s);
    }
    __syncthreads();
    result = {s.id, s.decided ? draw_state::drawn : draw_state::undecided};
  }
  if (changes && best) restore_row(o, words, saved, logits);
  if (threadIdx.x == 0) out[blockIdx.x] = result;
}

}  // namespace

void sample_rows(device& d, const draw_order* draws, std::uint32_t count, const std::uint32_t* words,
                 float* saved, float* logits, std::uint32_t vocab, decoder_result* out) {
  launch(d, sample_kernel, dim3(count), threads, 0, draws, words, saved, logits, vocab, out);
}

}  // namespace weir::kernels::cuda
