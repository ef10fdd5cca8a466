#include "core/schedule/sequence.h"

#include <algorithm>
#include <cassert>

namespace weir::core {
namespace {

// Tokens whose logprobs find room without an allocation: as many as a sink's queue takes at least.
constexpr std::uint32_t usual_logprobs = 128;

std::uint64_t bit_of(token_id id) { return std::uint64_t{1} << (static_cast<std::uint32_t>(id) % 64); }

}  // namespace

sequence::sequence(job j, const model_info& m, std::uint32_t longest)
    : asked(std::move(j)), root(root_name(asked.cache_salt, m.kv_type)), last_name(root) {
  prompt_tokens_ = static_cast<std::uint32_t>(asked.prompt.size());
  max_output = std::min(asked.max_tokens, longest - prompt_tokens_);
  min_tokens_ = asked.min_tokens;
  watched_ = !asked.stop.empty() || asked.max_repeats > 0;
  if (asked.constraint) fit_ = fit_state::fitted;
  if (asked.top_logprobs) top_logprobs_ = static_cast<std::int8_t>(*asked.top_logprobs);
  sink_ = asked.sink.get();
  if (!asked.ignore_eos) endings = m.stop_ids;
  endings.insert(endings.end(), asked.stop_token_ids.begin(), asked.stop_token_ids.end());
  for (const token_id id : endings) ending_bits_ |= bit_of(id);
}

void sequence::enter(std::uint64_t admission, time_point now, std::uint32_t vocab_size) {
  assert(phase == sequence_phase::waiting || phase == sequence_phase::preempted);
  phase = sequence_phase::running;
  ordinal = admission;
  computed_at = now;
  if (chooser) return;
  chooser.emplace(
      asked.sampling, vocab_size, asked.prompt,
      sampler::limits{.max_tokens = max_output, .min_tokens = asked.min_tokens, .endings = endings});
  if (fitted()) {
    grammar::job_mask::limits l{.vocab_size = vocab_size,
                                .min_tokens = asked.min_tokens,
                                .max_tokens = max_output,
                                .endings = endings,
                                .force = asked.force,
                                .draw_forced = asked.top_logprobs.has_value()};
    fit = std::make_shared<grammar::job_mask>(asked.constraint, std::move(l));
  }
  stops = stop_matcher(asked.stop);
  if (asked.max_repeats > 0) loops.emplace(asked.max_repeats);
  output.reserve(max_output);
  if (asked.prompt_logprobs) {
    prompt_logprobs = std::make_shared<std::vector<kernels::scored_token>>();
    prompt_logprobs->reserve(rows_to_score());
  }
  if (asked.top_logprobs) logprobs_.reserve(std::min(max_output, usual_logprobs));
  pages.reserve(pages_for(prompt_tokens() + max_output));
}

void sequence::wake() noexcept {
  assert(paused_until && !ended());
  paused_until.reset();
  if (awaits()) return;
  if (pages.size() > 0) {
    phase = sequence_phase::running;
  } else {
    phase = chooser ? sequence_phase::preempted : sequence_phase::waiting;
  }
}

void sequence::found(std::uint32_t rows) noexcept {
  const std::uint32_t known = std::max(computed, furthest_);
  if (rows > known) cached += std::min(rows, prompt_tokens()) - std::min(known, prompt_tokens());
  computed = rows;
}

void sequence::give_back(page_pool& pool) {
  pages.release(pool);
  computed = named = 0;
  if (fitted()) sit_out(false);
  last_name = root;
}

void sequence::preempt(page_pool& pool) {
  assert(in_batch() || paused_until);
  furthest_ = std::max(furthest_, computed);
  give_back(pool);
  phase = paused_until ? sequence_phase::paused : sequence_phase::preempted;
  ++preemptions;
}

bool sequence::accept(token t, const token_table& text, const kernels::draw_logprobs* logprobs) {
  assert(phase == sequence_phase::running);
  if (sampled++ > 0) {
    max_gap_ = std::max(max_gap_, t.at - last_at_);
  } else {
    how.first_token = t.at;
  }
  last_at_ = t.at;
  const bool may_stop = output.size() >= min_tokens_;
  if (may_stop && is_ending(t.id)) return last(finish_reason::stop);
  output.push_back(t);
  if (logprobs) logprobs_.push_back(*logprobs);
  chooser->accept(t.id);
  if (!watched_) {
    decided = static_cast<std::uint32_t>(output.size());
  } else if (!watch(t.id, may_stop, text)) {
    return false;
  }
  if (output.size() == max_output) return last(finish_reason::length);
  return true;
}

bool sequence::is_ending(token_id id) const noexcept {
  return (ending_bits_ & bit_of(id)) && std::find(endings.begin(), endings.end(), id) != endings.end();
}

bool sequence::watch(token_id id, bool may_stop, const token_table& text) {
  if (stops.empty()) {
    decided = static_cast<std::uint32_t>(output.size());
  } else if (may_stop) {
    if (const auto start = judge(id, text)) {
      cut(*start, text);
      how.stop_string = stops.which();
      return last(finish_reason::stop);
    }
    decide(text_bytes_ - stops.pending(), text);
  } else {
    text_bytes_ += text[id].size();
    decide(text_bytes_, text);
  }
  if (loops && loops->feed(output) && output.size() >= min_tokens_) return last(finish_reason::repetition);
  return true;
}

std::optional<std::uint64_t> sequence::judge(token_id id, const token_table& text) {
  const std::uint64_t watched_from = text_bytes_ - stops.fed();
  text_bytes_ += text[id].size();
  const auto start = stops.feed(text[id]);
  if (!start) return std::nullopt;
  return watched_from + *start;
}

void sequence::decide(std::uint64_t bytes, const token_table& text) {
  while (decided < output.size()) {
    const std::uint64_t end = decided_bytes_ + text[output[decided].id].size();
    if (end > bytes) return;
    decided_bytes_ = end;
    ++decided;
  }
}

void sequence::cut(std::uint64_t bytes, const token_table& text) {
  matched_ = true;
  while (decided_bytes_ < bytes) decided_bytes_ += text[output[decided++].id].size();
  if (decided_bytes_ > bytes) how.shown_bytes = bytes;
}

void sequence::close(finish_reason why, page_pool& pool, std::optional<error> fault) {
  assert(!ended());
  give_back(pool);
  if (!matched_) decided = static_cast<std::uint32_t>(output.size());
  phase = sequence_phase::ended;
  how.reason = why;
  how.input_tokens = prompt_tokens();
  how.output_tokens = sampled;
  how.cached_tokens = cached;
  how.scheduled = scheduled;
  if (sampled > 0) how.last_token = last_at_;
  how.max_gap = max_gap_;
  how.fault = std::move(fault);
  how.prompt_logprobs = prompt_logprobs;
}

void sequence::write_tail() {
  const std::span<const token> tail = std::span(output).subspan(delivered, decided - delivered);
  const bool plain = top_logprobs_ < 0;
  const std::size_t taken =
      plain ? sink_->write(tail) : sink_->write_with_logprobs(tail, std::span(logprobs_).first(tail.size()));
  assert(taken <= tail.size());
  delivered += static_cast<std::uint32_t>(taken);
  if (!plain) logprobs_.erase(logprobs_.begin(), logprobs_.begin() + static_cast<std::ptrdiff_t>(taken));
}

bool sequence::settle() {
  assert(ended());
  offer();
  if (tail_waits()) return false;
  sink_->finish(how);
  return true;
}

void sequence::settle_now() {
  if (settle()) return;
  decided = delivered;
  sink_->finish(how);
}

}  // namespace weir::core
