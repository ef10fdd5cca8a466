#include "kernels/cuda/draws/sample.h"

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/draws/best_few.h"
#include "kernels/cuda/draws/sample_steps.h"

namespace weir::kernels::cuda {
namespace {

using namespace sampling;

static_assert(sizeof(draw_result) == sizeof(int2));
static_assert(sizeof(draw_order) == 64);  // one cache line of the host, which is slow to read

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
    logits[words[o.lists_at + o.words_a_seen() * i]] = saved[o.lists_at + o.words_a_seen() * i];
}

// Applies the cuts, then draws a token among those that are kept.
__device__ void draw(const draw_order& o, const float* logits, std::uint32_t vocab, float top,
                     allowed_tokens allowed, room& s) {
  if (o.top_k > 0 && o.top_k <= min(most_few, vocab - 1)) {
    const std::uint32_t found = best_few(logits, vocab, o.top_k, allowed, s);
    if (found > 0) return draw_among_few(o, top, found, s);
  }
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

__global__ void __launch_bounds__(threads)
    sample_kernel(const draw_order* draws, const std::uint32_t* words, float* saved, float* all_logits,
                  std::uint32_t vocab, draw_result* out, draw_logprobs* logprobs, std::int32_t* ids) {
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
  draw_result result{-1, raw_best ? draw_state::nothing_left : draw_state::fault};
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
                 float* saved, float* logits, std::uint32_t vocab, draw_result* out, draw_logprobs* logprobs,
                 std::int32_t* ids) {
  launch_after_all(d, sample_kernel, dim3(count), threads, draws, words, saved, logits, vocab, out, logprobs,
                   ids);
}

}  // namespace weir::kernels::cuda
