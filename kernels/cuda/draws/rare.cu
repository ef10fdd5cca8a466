#include "kernels/cuda/draws/rare.h"

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/draws/rare_cuts.h"
#include "kernels/cuda/draws/sample_steps.h"

namespace weir::kernels::cuda {
namespace {

using namespace sampling;

// Makes the row a copy in `own`, which may be changed.
__device__ void own_row(rare_row& r, float* own) {
  if (r.values == own) return;
  each_of(r, [&](std::uint32_t i) { own[i] = r.values[i]; });
  r.values = own;
  __syncthreads();
}

// Changes the row by the draw's lists, if there are any, and returns its best key. `raw_best`: that of the
// row as it is, which is the model's.
__device__ u64 change(const draw_order& o, const std::uint32_t* words, float* saved, rare_row& r, float* own,
                      u64 raw_best, room& s) {
  if (o.seen + o.biases + o.masked + o.allowed_words == 0) return raw_best;
  own_row(r, own);
  if (o.seen + o.biases + o.masked > 0) change_row(o, words, saved, r.values);
  const allowed_tokens allowed{o.allowed_words > 0 ? words + o.allowed_at() : nullptr};
  if (allowed.words) drop_where(r, [&](std::uint32_t i) { return !allowed.has(i); });
  return best_of(r.values, r.count, s);
}

// Draws a token from the row, whose largest logit is r.top, into s.id. Returns its surprise.
__device__ float draw_from(rare_row& r, float* own, const rare_order& o, room& s) {
  const rare_numbers& p = o.rare;
  const std::uint32_t vocab = r.count;
  const double all = -INFINITY;
  if (!begin_with_few(r, own, o, p, s)) {
    own_row(r, own);
    if (p.top_n_sigma > 0) drop_below(r, least_near_top(r, p.top_n_sigma, s));
    if (p.temperature_last == 0) temper(r, temperature_of(r, o.temperature, p, all, s), p, s);
  }
  apply_cuts(r, vocab, o, p, s);
  if (p.temperature_last != 0) {
    drop_where(r, [&](std::uint32_t i) { return r.weight(i) == 0; });
    r.top = logit_of(best_of(r.values, r.count, s));
    temper(r, temperature_of(r, o.temperature, p, all, s), p, s);
  }
  draw_among(r, o.uniform, r.count, s);
  __syncthreads();
  const auto drawn = static_cast<std::uint32_t>(s.id);
  const double total = total_weight(r, s);
  __syncthreads();
  if (threadIdx.x == 0) s.id = static_cast<std::int32_t>(r.token(drawn));
  __syncthreads();
  return static_cast<float>(log2(total / static_cast<double>(r.weight(drawn))));
}

__global__ void __launch_bounds__(threads)
    rare_kernel(const rare_order* draws, const std::uint32_t* words, float* saved, const float* all_logits,
                std::uint32_t vocab, float* all_rooms, draw_result* out, float* surprises,
                draw_logprobs* logprobs, std::int32_t* ids) {
  __shared__ room s;
  __shared__ alignas(rare_order) std::uint32_t order[sizeof(rare_order) / 4];
  let_next_start();
  // One warp reads the whole order at once, as in sample.cu.
  const auto* from = reinterpret_cast<const std::uint32_t*>(draws + blockIdx.x);
  if (threadIdx.x < sizeof(rare_order) / 4) order[threadIdx.x] = __ldcv(from + threadIdx.x);
  __syncthreads();
  const rare_order& o = *reinterpret_cast<const rare_order*>(order);
  const float* logits = all_logits + std::size_t{o.row} * vocab;
  float* own = all_rooms + blockIdx.x * rare_room(vocab);
  const std::size_t stride = rare_room(vocab) / 3;
  // The model's row is not written to: own_row() comes before every step that does.
  rare_row r{const_cast<float*>(logits), vocab, 0, nullptr, own + stride, own + 2 * stride};
  const u64 raw_best = best_of(logits, vocab, s);
  const u64 best = raw_best ? change(o, words, saved, r, own, raw_best, s) : 0;
  draw_result result{-1, raw_best ? draw_state::nothing_left : draw_state::fault};
  float surprise = 0;
  if (best) {
    r.top = logit_of(best);
    surprise = draw_from(r, own, o, s);
    result = {s.id, draw_state::drawn};
    if (o.top_logprobs >= 0) {
      __syncthreads();
      tell_logprobs(logits, vocab, logit_of(raw_best), result.id, static_cast<std::uint32_t>(o.top_logprobs),
                    logprobs + o.place, s);
    }
  }
  if (threadIdx.x != 0) return;
  if (o.rare.mirostat_mode > 0) {
    surprises[o.place] = surprise;
    __threadfence_system();  // the result tells the host that the surprise is there
  }
  __stwt(reinterpret_cast<int2*>(out) + o.place, make_int2(result.id, static_cast<int>(result.state)));
  ids[o.place] = best ? result.id : 0;
}

}  // namespace

void sample_rare_rows(device& d, const rare_order* draws, std::uint32_t count, const std::uint32_t* words,
                      float* saved, const float* logits, std::uint32_t vocab, float* room, draw_result* out,
                      float* surprises, draw_logprobs* logprobs, std::int32_t* ids) {
  launch_after_all(d, rare_kernel, dim3(count), threads, draws, words, saved, logits, vocab, room, out,
                   surprises, logprobs, ids);
}

}  // namespace weir::kernels::cuda
