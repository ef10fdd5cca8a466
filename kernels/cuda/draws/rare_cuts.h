// rare_cuts.h — the steps of core/sample/cuts.h and mirostat.h on a block's copy of a row, one function each,
// in the order in which a draw has them. All threads of a block call a function.
#pragma once

#include "kernels/cuda/draws/rare.h"
#include "kernels/cuda/draws/rare_sort.h"

namespace weir::kernels::cuda::sampling {

// The least logit that top_n_sigma keeps, where the row's largest is r.top.
inline __device__ double least_near_top(const rare_row& r, float n, room& s) {
  const double top = r.top;
  double count = 0, sum = 0, square = 0;  // of distances from the top, so that one pass is enough
  each_logit(r.values, r.count, [&](float l, std::uint32_t) {
    const bool there = l > -INFINITY;
    const double d = there ? static_cast<double>(l) - top : 0.0;
    count += there ? 1.0 : 0.0;
    sum += d;
    square += d * d;
  });
  const double left = block_total(count, s);
  const double mean = block_total(sum, s) / left;
  const double variance = fmax(block_total(square, s) / left - mean * mean, 0.0);
  return top - static_cast<double>(n) * sqrt(variance);
}

inline __device__ void drop_below(const rare_row& r, double least) {
  drop_where(r, [&](std::uint32_t i) { return static_cast<double>(r.values[i]) < least; });
}

// The temperature of the row, whose largest logit is r.top. With dynatemp_range it depends on the tokens from
// the logit `least` on.
inline __device__ double temperature_of(const rare_row& r, float middle, const rare_numbers& p, double least,
                                        room& s) {
  const double t = middle, range = p.dynatemp_range;
  if (range <= 0) return t;
  double mine = 0, weights = 0, products = 0;
  each_logit(r.values, r.count, [&](float l, std::uint32_t) {
    const bool there = l > -INFINITY && static_cast<double>(l) >= least;
    const double w = there ? weight_of(l, r.top, 1) : 0.0f;
    mine += there ? 1.0 : 0.0;
    weights += w;
    products += w > 0 ? w * (static_cast<double>(l) - static_cast<double>(r.top)) : 0.0;
  });
  const double left = block_total(mine, s);
  const double total = block_total(weights, s);
  const double sum = block_total(products, s);
  if (left == 1) return t;
  const double entropy = fmin(fmax((log(total) - sum / total) / log(left), 0.0), 1.0);
  const double low = fmax(0.0, t - range);
  return low + (t + range - low) * pow(entropy, static_cast<double>(p.dynatemp_exponent));
}

// Applies temperature `t` and smoothing, and sets r.top to the new largest logit.
inline __device__ void temper(rare_row& r, double t, const rare_numbers& p, room& s) {
  const u64 best = best_of(r.values, r.count, s);
  const double top = logit_of(best), f = p.smoothing_factor, c = p.smoothing_curve;
  __syncthreads();
  each_of(r, [&](std::uint32_t i) {
    float& l = r.values[i];
    if (t == 0) {
      l = i == id_of(best) ? 0.0f : -INFINITY;
      return;
    }
    if (!(l > -INFINITY)) return;
    double d = (static_cast<double>(l) - top) / t;
    if (f > 0) d = d * d * f * (d * (c - 1) / 2 - (3 - c) / 2);
    l = static_cast<float>(fmin(fmax(d, -1e38), 1e38));
  });
  __syncthreads();
  r.top = logit_of(best_of(r.values, r.count, s));
}

inline __device__ void cut_top_p(const rare_row& r, float top_p, room& s) {
  const double wanted = static_cast<double>(top_p) * total_weight(r, s);
  const u64 edge = find_edge(r, false, wanted, r.count, s);
  drop_where(r, [&](std::uint32_t i) { return key_of(r.values[i], i) < edge; });
}

// A row whose best token is the one that is nearest to the mean of all log p.
struct by_distance : rare_row {
  double mean;
  __device__ float logit(std::uint32_t i) const {
    const double distance = fabs(static_cast<double>(values[i]) - mean);
    return static_cast<float>(-fmin(distance, 1e38));
  }
  __device__ u64 key(std::uint32_t i) const { return key_of(logit(i), i); }
};

// The bins of find_edge() are those of logits up to by_distance::top; weights have the row's own top.
struct ranked_by_distance {
  static constexpr bool fine_sums = true;
  by_distance of;
  float top;  // of logit()

  __device__ float logit(std::uint32_t i) const { return of.logit(i); }
  __device__ float weight(std::uint32_t i) const { return of.weight(i); }
  __device__ float weight_by(u64 key) const { return of.weight(id_of(key)); }
};

inline __device__ void cut_typical(const rare_row& r, float typical_p, room& s) {
  const double total = total_weight(r, s);
  const double mean = sum_over(r, s, [&](std::uint32_t i) {
    const double w = r.weight(i);
    return w > 0 ? w / total * static_cast<double>(r.values[i]) : 0.0;
  });
  const by_distance d{r, mean};
  u64 best = 0;
  for (std::uint32_t i = threadIdx.x; i < r.count; i += threads)
    if (r.weight(i) > 0) best = max(best, d.key(i));
  const ranked_by_distance ranked{d, logit_of(extreme_key<true>(best, s))};
  const u64 edge = find_edge(ranked, false, static_cast<double>(typical_p) * total, r.count, s);
  drop_where(r, [&](std::uint32_t i) { return d.key(i) < edge; });
}

// The number of tokens that tfs keeps of `count` ones, whose weights are `keys` as sort_weights() has them.
inline __device__ std::uint32_t kept_of_tail(const std::uint32_t* keys, std::uint32_t largest,
                                             std::uint32_t count, float tfs, std::uint32_t vocab, room& s) {
  const auto at = [&](std::uint32_t i) {
    return i < count ? static_cast<double>(__uint_as_float(largest - keys[i])) : 0.0;
  };
  const auto bend = [&](int i) {
    const auto from = static_cast<std::uint32_t>(i);
    return fabs(at(from) - 2 * at(from + 1) + at(from + 2));
  };
  const std::uint32_t ranks = min(vocab, count + 2);
  const int bends = ranks > 2 ? static_cast<int>(ranks) - 2 : 0;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int stretch = (bends + threads - 1) / threads * 32;
  const int begin = warp * stretch, here = max(0, min(stretch, bends - begin));
  double sum = 0;
  for (int i = lane; i < here; i += 32) sum += bend(begin + i);
  const double all = block_total(sum, s);  // leaves the sums of warps in s.sums
  __syncthreads();
  if (threadIdx.x == 0) s.found = all == 0 ? count : static_cast<std::uint32_t>(bends) + 1;
  __syncthreads();
  if (all == 0) return count;
  const double target = static_cast<double>(tfs) * all;
  double before = 0;
  int chosen = -1;
  for (int w = 0; w < threads / 32; ++w) {
    if (before + s.sums[w] > target) {
      chosen = w;
      break;
    }
    before += s.sums[w];
  }
  if (warp == chosen) {
    const int first = first_beyond<false>(here, target, before, lane, [&](int i) { return bend(begin + i); });
    if (lane == 0 && first >= 0) s.found = static_cast<std::uint32_t>(begin + first) + 1;
  }
  __syncthreads();
  return s.found;
}

inline __device__ void cut_tfs(const rare_row& r, float tfs, std::uint32_t vocab, room& s) {
  const double total = total_weight(r, s);
  drop_where(r, [&](std::uint32_t i) { return static_cast<double>(r.weight(i)) < 1e-8 * total; });
  const std::uint32_t largest = __float_as_uint(r.weight(id_of(best_of(r.values, r.count, s))));
  const std::uint32_t count = sort_weights(r, largest, s);
  const std::uint32_t kept =
      kept_of_tail(reinterpret_cast<const std::uint32_t*>(r.spare), largest, count, tfs, vocab, s);
  if (kept < count) keep_ranks(r, kept, s);
}

// The exponent of the Zipf distribution that mirostat 1 fits to the best tokens. REQUIRES: two at least.
inline __device__ double fitted_exponent(const rare_row& r, std::uint32_t left, room& s) {
  constexpr std::uint32_t most = 100;
  const std::uint32_t fitted = min(left, most);
  const u64 edge = find_edge(r, true, fitted, r.count, s);
  __syncthreads();
  if (threadIdx.x == 0) s.found = 0;
  if (threadIdx.x < 128) s.candidates[threadIdx.x] = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < r.count; i += threads) {
    const u64 key = key_of(r.values[i], i);
    if (r.weight(i) > 0 && key >= edge) s.candidates[atomicAdd(&s.found, 1u)] = key;
  }
  __syncthreads();
  sort_descending(s.candidates, 128);
  double product = 0, square = 0;
  if (threadIdx.x + 1 < fitted) {
    const double t = log((threadIdx.x + 2.0) / (threadIdx.x + 1.0));
    product = t * (static_cast<double>(logit_of(s.candidates[threadIdx.x])) -
                   static_cast<double>(logit_of(s.candidates[threadIdx.x + 1])));
    square = t * t;
  }
  const double products = block_total(product, s);
  return products / block_total(square, s);
}

inline __device__ void cut_mirostat(const rare_row& r, const rare_numbers& p, std::uint32_t vocab, room& s) {
  const auto left = static_cast<std::uint32_t>(
      sum_over(r, s, [&](std::uint32_t i) { return r.weight(i) > 0 ? 1.0 : 0.0; }));
  if (left < 2) return;
  if (p.mirostat_mode == 2) {
    const double least = exp2(-p.mu) * total_weight(r, s);
    const std::uint32_t best = id_of(best_of(r.values, r.count, s));
    drop_where(r, [&](std::uint32_t i) { return i != best && static_cast<double>(r.weight(i)) < least; });
    return;
  }
  const double exponent = fitted_exponent(r, left, s), e = exponent - 1, n = vocab;
  const double share = e == 0 ? 1 / log(n) : e / -expm1(-e * log(n));
  const double k = pow(share * exp2(p.mu), 1 / exponent);
  if (k >= static_cast<double>(left)) return;
  keep_ranks(r, k >= 1 ? floor(k) : 1.0, s);
}

inline __device__ void cut_top_choices(const rare_row& r, float threshold, room& s) {
  const double least = static_cast<double>(threshold) * total_weight(r, s);
  const auto is_choice = [&](std::uint32_t i) {
    const float w = r.weight(i);
    return w > 0 && static_cast<double>(w) >= least;
  };
  u64 worst = ~u64{0};
  for (std::uint32_t i = threadIdx.x; i < r.count; i += threads)
    if (is_choice(i)) worst = min(worst, key_of(r.values[i], i));
  worst = extreme_key<false>(worst, s);
  drop_where(r, [&](std::uint32_t i) { return is_choice(i) && key_of(r.values[i], i) != worst; });
}

// The steps up to top_k where it leaves few tokens. These are the best tokens of the row as it is, since
// temperature and smoothing keep their order. False: it cannot be done so, and nothing has changed. `own`: as
// in keep_few().
inline __device__ bool begin_with_few(rare_row& r, float* own, const draw_numbers& o, const rare_numbers& p,
                                      room& s) {
  if (o.top_k == 0 || o.top_k > min(most_few, r.count - 1) || p.smoothing_curve > 3) return false;
  const double all = -INFINITY, least = p.top_n_sigma > 0 ? least_near_top(r, p.top_n_sigma, s) : all;
  const bool tempers = p.temperature_last == 0;
  const double t = tempers ? temperature_of(r, o.temperature, p, least, s) : 1;
  if (!keep_few(r, own, o.top_k, s)) return false;
  drop_below(r, least);
  if (tempers) temper(r, t, p, s);
  return true;
}

// All cuts of a draw, in their order; top_k where the row is not shortened yet. Shortens the row where they
// leave few tokens. `vocab`: of the model.
inline __device__ void apply_cuts(rare_row& r, std::uint32_t vocab, const draw_numbers& o,
                                  const rare_numbers& p, room& s) {
  if (!r.ids && o.top_k > 0 && o.top_k < vocab) {
    keep_ranks(r, o.top_k, s);
    shorten(r, s);
  }
  if (o.top_p < 1) cut_top_p(r, o.top_p, s);
  if (o.min_p > 0) drop_where(r, [&](std::uint32_t i) { return r.weight(i) < o.min_p; });
  shorten(r, s);
  if (p.top_a > 0) {
    const auto least = static_cast<float>(static_cast<double>(p.top_a) / total_weight(r, s));
    drop_where(r, [&](std::uint32_t i) { return r.weight(i) < least; });
  }
  if (p.typical_p < 1) cut_typical(r, p.typical_p, s);
  if (p.tfs < 1) cut_tfs(r, p.tfs, vocab, s);
  if (p.mirostat_mode > 0) cut_mirostat(r, p, vocab, s);
  if (p.xtc_threshold >= 0) cut_top_choices(r, p.xtc_threshold, s);
}

}  // namespace weir::kernels::cuda::sampling
