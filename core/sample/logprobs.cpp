#include "core/sample/logprobs.h"

#include <cassert>
#include <cmath>

#include "core/sample/steps.h"
#include "kernels/logits.h"

namespace weir::core {

void compute_logprobs(std::span<const float> logits, token_id drawn, std::uint32_t top,
                      sample_scratch& scratch, draw_logprobs& out) {
  assert(top <= most_top_logprobs);
  const auto best = largest(logits);
  assert(best);
  const std::span weights = std::span(scratch.weights).first(logits.size());
  weigh(logits, best->logit, 1, weights);
  const double log_sum =
      best->logit + std::log(kernels::logits().sum_from(weights.data(), weights.size(), 0));
  const auto of = [&](token_id id) {
    return token_logprob{id, static_cast<float>(logits[static_cast<std::size_t>(id)] - log_sum)};
  };
  out.drawn = of(drawn);
  out.count = 0;
  if (top == 0) return;
  list_best(logits, top, scratch.candidates);
  for (const candidate& c : scratch.candidates) out.likeliest[out.count++] = of(c.id);
}

bool score_token(std::span<const float> logits, token_id given, std::uint32_t top, sample_scratch& scratch,
                 scored_token& out) {
  if (logits.empty() || !largest(logits)) return false;
  compute_logprobs(logits, given, top, scratch, out);
  const candidate it{logits[static_cast<std::size_t>(given)], given};
  out.rank = 1;
  for (std::size_t i = 0; i < logits.size(); ++i)
    out.rank += better({logits[i], static_cast<token_id>(i)}, it) ? 1 : 0;
  return true;
}

}  // namespace weir::core
