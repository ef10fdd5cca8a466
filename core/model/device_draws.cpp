#include "core/model/device_draws.h"

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
  o.allowed_words = static_cast<std::uint32_t>(d.allowed.size());
  o.allowed = d.allowed;
  if (p.temperature > 0) o.uniform = uniform(p.seed, d.from->site_of(d.position));
  if (p.temperature > 0 && d.from->rare_cuts()) put_rare(d, o.rare.emplace());
  if (!d.from->changes_logits()) return;
  const token_counts& seen = d.from->seen();
  seen.append_to(seen_);
  for (const auto& [id, value] : p.logit_bias) biases_.push_back({id, value});
  o.seen = std::span(seen_).last(seen.size());
  o.biases = std::span(biases_).last(p.logit_bias.size());
  o.masked = d.from->masked();
}

bool device_draws::begin(kernels::decoder& on, std::span<const draw> draws) {
  draws_.clear();
  seen_.clear();
  biases_.clear();
  std::size_t seen = 0, biases = 0;
  for (const draw& d : draws) {
    if (!d.from->changes_logits()) continue;
    seen += d.from->seen().size();
    biases += d.from->params().logit_bias.size();
  }
  seen_.reserve(seen);  // draws_ has spans into both lists while the lists grow
  biases_.reserve(biases);
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
