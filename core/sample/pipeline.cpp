#include "core/sample/pipeline.h"

#include <algorithm>
#include <iterator>

#include "core/sample/philox.h"

namespace weir::core {

sampler::sampler(const sampling_params& params, std::uint32_t vocab_size, std::span<const token_id> prompt,
                 limits l)
    : min_tokens_(l.min_tokens),
      lists_(has_penalties(params) || !params.logit_bias.empty()),
      params_(params) {
  // A model's files may name ending tokens that it has no logits for.
  std::copy_if(l.endings.begin(), l.endings.end(), std::back_inserter(endings_),
               [&](token_id id) { return static_cast<std::uint32_t>(id) < vocab_size; });
  if (!has_penalties(params_)) return;
  const std::uint64_t most = prompt.size() + std::uint64_t{l.max_tokens};
  seen_ = token_counts(static_cast<std::uint32_t>(std::min<std::uint64_t>(most, vocab_size)));
  for (const token_id id : prompt) seen_.add(id, false);
}

void sampler::accept(token_id id) {
  ++accepted_;
  if (lists_ && seen_.enabled()) seen_.add(id, true);
}

void sampler::reshape(std::span<float> values) const {
  if (seen_.enabled()) apply_penalties(values, seen_.entries(), params_);
  apply_bias(values, params_.logit_bias);
  if (accepted_ < min_tokens_) apply_mask(values, endings_);
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
