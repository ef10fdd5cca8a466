// sample_cut.h — where top_k and top_p cut a row: the key of the last token that they keep. Histograms of the
// logits narrow the search down to a few tokens, which are sorted. All threads of a block call a function,
// except first_beyond().
#pragma once

#include "kernels/cuda/draws/sample_keys.h"

namespace weir::kernels::cuda::sampling {

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
inline __device__ double block_total(double v, room& s) {
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

  static constexpr bool fine_sums = false;  // as find_bin() has it

  __device__ float logit(std::uint32_t i) const { return logits[i]; }
  __device__ float weight_by(u64 key) const { return weight_of(logit_of(key), top, temperature); }
  __device__ float weight(std::uint32_t i) const {
    const float w = weight_of(logits[i], top, temperature);
    const bool in = w >= least && (edge == 0 || key_of(logits[i], i) >= edge) && allowed.has(i);
    return in ? w : 0.0f;
  }
};

// Sorts by a bitonic network. REQUIRES: `count` is a power of two
inline __device__ void sort_descending(u64* keys, int count) {
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
// value before it. Weights are summed in units of 2^-28, with Kept::fine_sums in units of 2^-42.
template <class Kept>
__device__ void find_bin(const Kept& k, const binning& bin_of, bool by_rank, double wanted, double above,
                         std::uint32_t vocab, room& s) {
  __syncthreads();
  [[maybe_unused]] auto* lowest = reinterpret_cast<std::uint32_t*>(s.candidates);  // units of 2^-42
  for (int i = static_cast<int>(threadIdx.x); i < bins; i += threads) {
    s.counts[i] = s.low[i] = s.high[i] = 0;
    if constexpr (Kept::fine_sums) lowest[i] = 0;
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < vocab; i += threads) {
    const float w = k.weight(i);
    const int bin = w > 0 ? bin_of(k.logit(i)) : -1;
    if (bin < 0) continue;
    atomicAdd(&s.counts[bin], 1u);
    if (by_rank) continue;
    const auto units = static_cast<std::uint32_t>(w * 0x1p28f);
    atomicAdd(&s.low[bin], units & 0x3fffu);
    atomicAdd(&s.high[bin], units >> 14);
    if constexpr (Kept::fine_sums)
      atomicAdd(&lowest[bin], static_cast<std::uint32_t>((w * 0x1p28f - static_cast<float>(units)) * 16384));
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = static_cast<int>(threadIdx.x);
    // Sums of integers, scaled: they do not depend on the order.
    const auto more = [&](int b) {
      if (by_rank) return static_cast<double>(s.counts[b]);
      double sum = (s.high[b] * 16384.0 + s.low[b]) * 0x1p-28;
      if constexpr (Kept::fine_sums) sum += lowest[b] * 0x1p-42;
      return sum > 0 || s.counts[b] == 0 ? sum : 1e-300;  // a bin with tokens is not passed over
    };
    double running = above;
    const int found = first_beyond<true>(bins, wanted, running, lane, more);
    double before = 0;
    for (int b = lane; b < found; b += 32) before += more(b);
    for (int o = 16; o; o >>= 1) before += __shfl_xor_sync(~0u, before, o);
    if (lane == 0) {
      s.bin = found;
      s.above = above + before;
    }
  }
  __syncthreads();
}

// The key that find_edge() looks for, where more tokens have nearly the same logit than are sorted: digit by
// digit of 8 bits, the highest digit first. `among` selects the logits in question; `above` is the running
// value before all of them.
template <class Kept, class Among>
__device__ u64 find_edge_by_digits(const Kept& k, bool by_rank, double wanted, double above,
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
      if (w == 0 || !among(k.logit(i))) continue;
      const u64 key = key_of(k.logit(i), i);
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
template <class Kept>
__device__ u64 find_edge(const Kept& k, bool by_rank, double wanted, std::uint32_t vocab, room& s) {
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
    const int here = fine(k.logit(i));
    if (here >= 0 ? here < bin : all(k.logit(i)) < coarse) above += by_rank ? 1.0 : w;
    if (here != bin) continue;
    const std::uint32_t at = atomicAdd(&s.found, 1u);
    if (at < most_candidates) s.candidates[at] = key_of(k.logit(i), i);
  }
  above = block_total(above, s);
  const int found = static_cast<int>(s.found);
  if (found > most_candidates)
    return find_edge_by_digits(
        k, by_rank, wanted, above, vocab, [&](float l) { return fine(l) == bin; }, s);
  int size = 32;
  while (size < found) size *= 2;
  for (int i = found + static_cast<int>(threadIdx.x); i < size; i += threads) s.candidates[i] = 0;
  sort_descending(s.candidates, size);
  if (threadIdx.x < 32) {
    const auto weight = [&](int i) { return by_rank ? 1.0f : k.weight_by(s.candidates[i]); };
    const int at = first_beyond<true>(found, wanted, above, lane, weight);
    if (lane == 0) s.edge = s.candidates[at < 0 ? 0 : at];
  }
  __syncthreads();
  return s.edge;
}

}  // namespace weir::kernels::cuda::sampling
