#include "core/sample/pipeline.h"

#include <algorithm>
#include <cassert>

#include "core/sample/philox.h"

namespace weir::core {
namespace {

bool has_penalty(const sampling_params& p) {
  return p.repetition_penalty != 1 || p.frequency_penalty != 0 || p.presence_penalty != 0;
}

candidate tighter(candidate a, candidate b) { return before(a, b) ? a : b; }

// What top_k, top_p and min_p together leave.
candidate cut(std::span<const float> values, candidate top, const sampling_params& p,
              std::vector<candidate>& candidates) {
  candidate edge = no_edge;
  const bool nucleus = p.top_p < 1;
  if (p.top_k > 0 || nucleus) list_candidates(values, candidates);
  if (p.top_k > 0) edge = keep_top_k(candidates, p.top_k);
  if (nucleus) edge = tighter(edge, keep_top_p(candidates, p.top_p, top));
  if (p.min_p > 0) edge = tighter(edge, keep_min_p(p.min_p, top));
  return edge;
}

}  // namespace

sampler::sampler(const sampling_params& params, std::uint32_t vocab_size, std::span<const token_id> prompt,
                 limits l)
    : params_(params), endings_(l.endings.begin(), l.endings.end()), min_tokens_(l.min_tokens) {
  if (!has_penalty(params_)) return;
  const std::uint64_t most = prompt.size() + std::uint64_t{l.max_tokens};
  seen_ = token_counts(static_cast<std::uint32_t>(std::min<std::uint64_t>(most, vocab_size)));
  for (const token_id id : prompt) seen_.add(id, false);
}

void sampler::accept(token_id id) {
  ++accepted_;
  if (seen_.enabled()) seen_.add(id, true);
}

bool sampler::changes_logits() const noexcept {
  return seen_.enabled() || !params_.logit_bias.empty() || (accepted_ < min_tokens_ && !endings_.empty());
}

void sampler::reshape(std::span<float> values) const {
  if (seen_.enabled()) apply_penalties(values, seen_.entries(), params_);
  apply_bias(values, params_.logit_bias);
  if (accepted_ < min_tokens_) apply_mask(values, endings_);
}

std::optional<token_id> sampler::pick(std::span<const float> logits, std::uint32_t position,
                                      sample_scratch& scratch) const {
  const auto raw = largest(logits);
  if (!raw) return std::nullopt;
  const bool greedy = params_.temperature == 0;
  if (greedy && !changes_logits()) return raw->id;

  const std::span values = std::span(scratch.values).first(logits.size());
  std::copy(logits.begin(), logits.end(), values.begin());
  reshape(values);
  auto top = largest(values);
  if (!top) return std::nullopt;
  if (greedy) return top->id;

  apply_temperature(values, params_.temperature, top->logit);
  top = largest(values);  // again: a division may have made the second equal to the first, with a lower id
  const candidate edge = cut(values, *top, params_, scratch.candidates);
  return draw_token(values, edge, *top, uniform(params_.seed, {.position = position}), scratch.weights);
}

}  // namespace weir::core
