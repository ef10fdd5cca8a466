#include "core/sample/pipeline.h"

#include <algorithm>
#include <utility>

#include "core/sample/philox.h"

namespace weir::core {

sampler::sampler(const sampling_params& params, std::uint32_t vocab_size, const token_set& prompt, limits l)
    : min_tokens_(l.min_tokens),
      lists_(has_penalties(params) || !params.logit_bias.empty()),
      params_(params),
      endings_(std::move(l.endings)),
      masked_(endings_.below(vocab_size)),
      prompt_(l.prompt) {
  if (!has_penalties(params_)) return;
  const bool looks_at_prompt = params_.repetition_penalty != 1;
  seen_ = token_counts(looks_at_prompt ? prompt : token_set(), std::min(l.max_tokens, vocab_size));
}

void sampler::accept(token_id id) {
  ++accepted_;
  if (lists_ && seen_.enabled()) seen_.add(id);
}

void sampler::reshape(std::span<float> values) const {
  if (seen_.enabled()) apply_penalties(values, seen_, params_);
  apply_bias(values, params_.logit_bias);
  apply_mask(values, masked());
}

std::optional<token_id> sampler::pick(std::span<const float> logits, std::uint32_t position,
                                      sample_scratch& scratch,
                                      std::span<const std::uint32_t> allowed) const {
  auto top = largest(logits);
  if (!top) return std::nullopt;
  if (changes_logits() || !allowed.empty()) {
    const std::span values = std::span(scratch.values).first(logits.size());
    std::copy(logits.begin(), logits.end(), values.begin());
    reshape(values);
    if (!allowed.empty()) keep_allowed(values, allowed);
    logits = values;
    top = largest(logits);
    if (!top) return std::nullopt;
  }
  if (params_.temperature == 0) return top->id;

  const std::span weights = std::span(scratch.weights).first(logits.size());
  weigh(logits, top->logit, params_.temperature, weights);
  apply_cuts(logits, params_, weights, scratch.candidates);
  return draw_token(weights, uniform(params_.seed, {.position = position, .choice = params_.choice}));
}

}  // namespace weir::core
