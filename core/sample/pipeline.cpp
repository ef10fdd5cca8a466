#include "core/sample/pipeline.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "core/sample/cuts.h"
#include "core/sample/mirostat.h"
#include "core/sample/philox.h"

namespace weir::core {
namespace {

std::size_t words_for(std::uint32_t vocab_size) { return (std::size_t{vocab_size} + 31) / 32; }

bool looks_back(const sampling_params& p) {
  return has_recent_penalties(p) || has_late_bans(p) || p.dry_multiplier > 0;
}

std::vector<std::uint32_t> words_of(const token_set& allowed, std::uint32_t vocab_size) {
  std::vector<std::uint32_t> out;
  if (allowed.empty()) return out;
  out.resize(words_for(vocab_size));
  for (const token_id id : allowed) out[static_cast<std::size_t>(id) / 32] |= 1u << id % 32;
  return out;
}

}  // namespace

sampler::sampler(const sampling_params& params, std::uint32_t vocab_size, const token_set& prompt, limits l)
    : min_tokens_(l.min_tokens),
      lists_(has_penalties(params) || !params.logit_bias.empty() || !params.disallow_tokens.empty() ||
             !params.allowed_token_ids.empty() || has_late_bans(params) || params.dry_multiplier > 0),
      rare_cuts_(has_rare_cuts(params)),
      steers_(params.mirostat_mode > 0),
      keeps_mu_(steers_ && l.goes_back),
      params_(params),
      before_min_(params_.disallow_tokens.empty() ? std::move(l.endings)
                                                  : l.endings.with(params_.disallow_tokens)),
      masked_(before_min_.below(vocab_size)),
      allowed_(words_of(params_.allowed_token_ids, vocab_size)),
      prompt_(l.prompt),
      mu_(first_mu(params)),
      vocab_size_(vocab_size),
      most_(static_cast<std::uint32_t>(l.prompt.size()) + l.max_tokens) {
  if (has_penalties(params_) && !has_recent_penalties(params_)) {
    const bool looks_at_prompt = params_.repetition_penalty != 1;
    seen_ = token_counts(looks_at_prompt ? prompt : token_set(), std::min(l.max_tokens, vocab_size));
  }
  if (keeps_mu_) mus_.reserve(l.max_tokens);
  if (!looks_back(params_)) return;
  history_.emplace(l.prompt, l.max_tokens);
  prepare_to_look_back();
}

void sampler::prepare_to_look_back() {
  const auto most_output = most_ - static_cast<std::uint32_t>(prompt_.size());
  if (has_recent_penalties(params_)) recent_.emplace(params_, vocab_size_, *history_, most_output);
  if (params_.dry_multiplier > 0) dry_.emplace(params_, *history_, most_, vocab_size_);
  if (!has_late_bans(params_)) return;
  bans_.emplace(params_, *history_, most_, vocab_size_);
  banned_.reserve(std::min<std::size_t>(vocab_size_, masked_.size() + most_ + params_.bad_words.size()));
  update_bans();
}

void sampler::look_back(token_id id) {
  history_->add(id);
  if (recent_) recent_->add(*history_);
  if (dry_) dry_->add(*history_);
  if (!bans_) return;
  bans_->add(*history_);
  update_bans();
}

void sampler::update_bans() {
  banned_.clear();
  if (bans_)
    std::ranges::set_union(fixed_bans(), bans_->now(), std::back_inserter(banned_));
  else
    std::ranges::copy(fixed_bans(), std::back_inserter(banned_));
  if (attempt_ == 0) return;
  for (const refusal& r : std::span(refused_).last(attempt_)) banned_.push_back(r.id);
  std::ranges::sort(banned_);
  const auto same = std::ranges::unique(banned_);
  banned_.erase(same.begin(), same.end());
}

void sampler::go_back(std::span<const token> taken) {
  for (const token& t : std::views::reverse(taken))
    if (seen_.enabled()) seen_.take_back(t.id);
  accepted_ -= static_cast<std::uint32_t>(taken.size());
  if (history_) history_->take_back(taken.size());
  if (keeps_mu_) {
    mus_.resize(accepted_);
    mu_ = mus_.empty() ? first_mu(params_) : mus_.back();
  }
  std::erase_if(refused_, [&](const refusal& r) { return r.place > accepted_; });
  refused_.push_back({accepted_, taken.front().id});
  attempt_ = attempts(accepted_);
  if (history_) prepare_to_look_back();
  update_bans();
}

std::uint32_t sampler::attempts(std::uint32_t at) const noexcept {
  return static_cast<std::uint32_t>(std::ranges::count(refused_, at, &refusal::place));
}

bool sampler::refuses(token_id id) const noexcept {
  return attempt_ > 0 &&
         std::ranges::any_of(refused_, [&](const refusal& r) { return r.place == accepted_ && r.id == id; });
}

std::uint64_t sampler::bytes_for(const sampling_params& params, std::uint32_t vocab_size,
                                 std::size_t prompt_tokens, std::uint32_t max_tokens) noexcept {
  std::uint64_t bytes = params.disallow_tokens.bytes();
  if (!params.allowed_token_ids.empty()) bytes += words_for(vocab_size) * sizeof(std::uint32_t);
  if (has_penalties(params) && !has_recent_penalties(params))
    bytes += token_counts::bytes_for(std::min(max_tokens, vocab_size));
  if (!looks_back(params)) return bytes;
  const auto most = static_cast<std::uint32_t>(prompt_tokens) + max_tokens;
  bytes += token_history::bytes_for(max_tokens);
  if (has_recent_penalties(params))
    bytes += recent_penalties::bytes_for(params, vocab_size, prompt_tokens, max_tokens);
  if (params.dry_multiplier > 0) bytes += dry_penalties::bytes_for(most, vocab_size);
  if (has_late_bans(params))
    bytes += late_bans::bytes_for(params, most, vocab_size) + std::min(most, vocab_size) * sizeof(token_id);
  return bytes;
}

void sampler::steer(float surprise) noexcept { mu_ = next_mu(params_, mu_, static_cast<double>(surprise)); }

void sampler::accept(token_id id) {
  ++accepted_;
  attempt_ = 0;
  if (keeps_mu_) mus_.push_back(mu_);
  if (!lists_) return;
  if (seen_.enabled()) seen_.add(id);
  if (history_) look_back(id);
}

void sampler::reshape(std::span<float> values) const {
  if (seen_.enabled()) apply_penalties(values, seen_, params_);
  if (recent_) apply_penalties(values, *recent_);
  apply_bias(values, params_.logit_bias);
  apply_mask(values, masked());
  if (!allowed_.empty()) keep_allowed(values, allowed_);
  if (!dry_) return;
  for (const auto& [id, minus] : dry_->now()) values[static_cast<std::size_t>(id)] -= minus;
}

std::optional<token_id> sampler::pick(std::span<const float> logits, std::uint32_t position,
                                      sample_scratch& scratch, std::span<const std::uint32_t> allowed) const {
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
  if (rare_cuts_) return pick_rarely(logits, position, scratch);

  const std::span weights = std::span(scratch.weights).first(logits.size());
  weigh(logits, top->logit, params_.temperature, weights);
  apply_cuts(logits, params_, weights, scratch.candidates);
  return draw_token(weights, uniform(params_.seed, site_of(position)));
}

token_id sampler::pick_rarely(std::span<const float> logits, std::uint32_t position,
                              sample_scratch& scratch) const {
  const std::span values = std::span(scratch.values).first(logits.size());
  const std::span weights = std::span(scratch.weights).first(logits.size());
  if (logits.data() != values.data()) std::copy(logits.begin(), logits.end(), values.begin());
  draw_site at = site_of(position);
  const double u = uniform(params_.seed, at);
  at.draw = 1;
  rare_state now{.mu = mu_};
  if (params_.xtc_probability > 0) now.coin = uniform(params_.seed, at);
  weigh_rarely(values, params_, now, weights, scratch.candidates);
  const token_id id = draw_token(weights, u);
  if (steers_) scratch.surprise = static_cast<float>(surprise_of(id, weights));
  return id;
}

}  // namespace weir::core
