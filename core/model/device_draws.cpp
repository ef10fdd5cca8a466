#include "core/model/device_draws.h"

#include <algorithm>

#include "core/sample/philox.h"
#include "core/sample/pipeline.h"

namespace weir::core {
namespace {

void put_rare(const draw& d, kernels::rare_numbers& o) {
  const sampling_params& p = d.from->params();
  o.top_n_sigma = p.top_n_sigma;
  o.dynatemp_range = p.dynatemp_range;
  o.dynatemp_exponent = p.dynatemp_exponent;
  o.smoothing_factor = p.smoothing_factor;
  o.smoothing_curve = p.smoothing_curve;
  o.top_a = p.top_a;
  o.typical_p = p.typical_p;
  o.tfs = p.tfs;
  o.mirostat_mode = p.mirostat_mode;
  o.temperature_last = p.temperature_last ? 1 : 0;
  o.mu = d.from->mu();
  if (p.xtc_probability == 0) return;
  draw_site coin = d.from->site_of(d.position);
  coin.draw = 1;
  if (uniform(p.seed, coin) < static_cast<double>(p.xtc_probability)) o.xtc_threshold = p.xtc_threshold;
}

}  // namespace

// Field by field into its place: copying what was just written stalls the processor.
void device_draws::put(const draw& d) {
  const sampling_params& p = d.from->params();
  kernels::decoder_draw& o = draws_.emplace_back();
  o.row = d.logits_row;
  o.temperature = p.temperature;
  o.top_k = p.top_k;
  o.top_p = p.top_p;
  o.min_p = p.min_p;
  o.repetition = p.repetition_penalty;
  o.frequency = p.frequency_penalty;
  o.presence = p.presence_penalty;
  o.top_logprobs = d.top_logprobs;
  put_allowed(d, o);
  if (p.temperature > 0) o.uniform = uniform(p.seed, d.from->site_of(d.position));
  if (p.temperature > 0 && d.from->rare_cuts()) put_rare(d, o.rare.emplace());
  if (!d.from->changes_logits()) return;
  put_penalties(*d.from, o);
  put_biases(*d.from, o);
  o.masked = d.from->masked();
}

void device_draws::put_allowed(const draw& d, kernels::decoder_draw& o) {
  const auto own = d.from->allowed();
  if (own.empty() || d.allowed.empty()) {
    o.allowed = own.empty() ? d.allowed : own;
  } else {
    for (std::size_t i = 0; i < own.size(); ++i) allowed_.push_back(own[i] & d.allowed[i]);
    o.allowed = std::span(allowed_).last(own.size());
  }
  o.allowed_words = static_cast<std::uint32_t>(o.allowed.size());
}

void device_draws::put_penalties(const sampler& from, kernels::decoder_draw& o) {
  if (const recent_penalties* recent = from.recent()) {
    const std::size_t first = weighted_.size();
    recent->for_each([&](token_id id, float factor, float minus) {
      weighted_.push_back({id, factor, minus});
    });
    o.weighted = std::span(weighted_).subspan(first);
    return;
  }
  from.seen().append_to(seen_);
  o.seen = std::span(seen_).last(from.seen().size());
}

void device_draws::put_biases(const sampler& from, kernels::decoder_draw& o) {
  const auto dry = from.dry();  // rising by id
  const std::size_t first = biases_.size();
  for (const auto& [id, minus] : dry) biases_.push_back({id, -minus});
  for (const auto& [id, value] : from.params().logit_bias) {
    const auto same = std::ranges::lower_bound(dry, id, {}, &dry_penalties::penalty::id);
    if (same != dry.end() && same->id == id)
      biases_[first + static_cast<std::size_t>(same - dry.begin())].value += value;
    else
      biases_.push_back({id, value});
  }
  o.biases = std::span(biases_).subspan(first);
}

void device_draws::reserve(std::span<const draw> draws) {
  std::size_t seen = 0, weighted = 0, biases = 0, allowed = 0;
  for (const draw& d : draws) {
    if (!d.from->changes_logits()) continue;
    seen += d.from->seen().size();
    if (const auto* recent = d.from->recent()) weighted += recent->most();
    biases += d.from->params().logit_bias.size() + d.from->dry().size();
    if (!d.allowed.empty()) allowed += d.from->allowed().size();
  }
  seen_.reserve(seen);
  weighted_.reserve(weighted);
  biases_.reserve(biases);
  allowed_.reserve(allowed);
}

bool device_draws::begin(kernels::decoder& on, std::span<const draw> draws) {
  draws_.clear();
  seen_.clear();
  weighted_.clear();
  biases_.clear();
  allowed_.clear();
  reserve(draws);
  for (const draw& d : draws) put(d);
  return on.draw(draws_);
}

bool device_draws::collect(kernels::decoder& on, std::span<drawn> out) {
  results_.resize(out.size());
  if (!on.collect(results_)) return false;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = {.id = results_[i].id,
              .fault = results_[i].state == kernels::draw_state::fault,
              .nothing_left = results_[i].state == kernels::draw_state::nothing_left,
              .surprise = results_[i].surprise};
  return true;
}

}  // namespace weir::core
