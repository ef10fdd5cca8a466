#include "core/schedule/sequence.h"

#include <algorithm>
#include <cassert>

namespace weir::core {
namespace {

bool is_in(std::span<const std::uint32_t> words, token_id id) {
  const auto i = static_cast<std::uint32_t>(id);
  return (words[i / 32] >> i % 32 & 1) != 0;
}

}  // namespace

sequence::sequence(job j, const model_info& m, std::uint32_t longest)
    : asked(std::move(j)), root_(root_name(asked.cache_salt, m.kv_type)), last_name_(root_) {
  prompt_tokens_ = static_cast<std::uint32_t>(asked.prompt.size());
  max_output_ = std::min(asked.max_tokens, longest - prompt_tokens_);
  assert(asked.kept <= prompt_tokens_ && !(asked.shifts && asked.prompt_logprobs));
  if (asked.shifts) shift_ = tokens_that_leave(longest, asked.kept);
  min_tokens_ = asked.min_tokens;
  watched_ = !asked.stop.empty() || !asked.banned.empty() || asked.max_repeats > 0;
  if (asked.constraint) mask_state_ = mask_state::on_time;
  if (asked.top_logprobs) top_logprobs_ = static_cast<std::int8_t>(*asked.top_logprobs);
  sink_ = asked.sink.get();
  endings_ = asked.ignore_eos ? asked.stop_token_ids : asked.stop_token_ids.with(m.stop_ids);
  ending_bits_ = endings_.filter();
}

void sequence::enter(std::uint64_t admission, time_point now, std::uint32_t vocab_size) {
  assert(phase_ == sequence_phase::waiting || phase_ == sequence_phase::preempted);
  phase_ = sequence_phase::running;
  ordinal_ = admission;
  computed_at = now;
  if (!chooser_) prepare(vocab_size);
}

void sequence::prepare(std::uint32_t vocab_size) {
  if (asked.prompt_ids.empty() && asked.sampling.repetition_penalty != 1)
    asked.prompt_ids = std::vector<token_id>(asked.prompt.begin(), asked.prompt.end());
  chooser_.emplace(asked.sampling, vocab_size, asked.prompt_ids,
                   sampler::limits{.max_tokens = most_output(),
                                   .min_tokens = asked.min_tokens,
                                   .endings = endings_,
                                   .goes_back = !asked.banned.empty(),
                                   .prompt = {asked.prompt.data(), asked.prompt.size()}});
  if (constrained()) {
    grammar::job_mask::limits l{.vocab_size = vocab_size,
                                .min_tokens = asked.min_tokens,
                                .max_tokens = most_output(),
                                .endings = endings_,
                                .force = asked.force,
                                .goes_back = !asked.banned.empty(),
                                .healing = asked.healing,
                                .draw_forced = asked.top_logprobs.has_value()};
    mask_ = std::make_shared<grammar::job_mask>(asked.constraint, std::move(l));
  }
  if (watched_)
    watch_.emplace(output_watch::rules{.stops = asked.stop,
                                       .banned = asked.banned,
                                       .max_repeats = asked.max_repeats,
                                       .min_tokens = asked.min_tokens,
                                       .shows_stop = asked.shows_stop,
                                       .max_output = most_output(),
                                       .healed = healed_bytes()});
  output_.reserve(max_output_);
  if (asked.prompt_logprobs) scored_.reserve(rows_to_score());
  if (asked.top_logprobs) logprobs_.reserve(max_output_);
  pages.reserve(pages_for(prompt_tokens() + max_output_));
}

std::optional<error> sequence::replay(const token_table& text, std::uint32_t vocab_size) {
  const std::vector<token_id>& spoken = asked.spoken;
  if (asked.sampling.mirostat_mode > 0)
    return bad_param("spoken",
                     "a job with mirostat_mode cannot go on behind spoken tokens: they do not say "
                     "how surprising they were");
  if (spoken.size() >= most_output())
    return bad_param("spoken", "spoken has {} tokens; a job that goes on has fewer than its maximum of {}",
                     spoken.size(), most_output());
  prepare(vocab_size);
  for (std::size_t i = 0; i < spoken.size(); ++i)
    if (auto why = repeat(i, text, vocab_size)) return why;
  sampled_ = decided_ = delivered_ = static_cast<std::uint32_t>(spoken.size());
  phase_ = sequence_phase::preempted;
  return std::nullopt;
}

std::optional<error> sequence::repeat(std::size_t i, const token_table& text, std::uint32_t vocab_size) {
  const token_id id = asked.spoken[i];
  if (id < 0 || static_cast<std::uint32_t>(id) >= vocab_size)
    return bad_param("spoken", "spoken[{}] is {}, which is no token of the model", i, id);
  if (is_ending(id))
    return bad_param("spoken", "spoken[{}] is token {}, a stop id of the job, which is never shown", i, id);
  if (i == 0 && asked.healing && !is_in(asked.healing->allowed, id))
    return bad_param("spoken", "spoken[0] is token {}, which does not begin as token_healing asks", id);
  output_.push_back({id, asked.created});
  chooser_->accept(id);
  if (is_full()) let_leave();
  if (!watched_) return std::nullopt;
  switch (watch_->take(output_, text)) {
    case output_watch::verdict::goes_on:
      return std::nullopt;
    case output_watch::verdict::banned_string:
      return bad_param("spoken", "spoken[{}] completes a banned string", i);
    case output_watch::verdict::stop_string:
      return bad_param("spoken", "spoken[{}] ends the job: by a stop string", i);
    case output_watch::verdict::repetition:
      break;
  }
  return bad_param("spoken", "spoken[{}] ends the job: by max_repeats", i);
}

void sequence::resume() noexcept {
  assert(rests());
  paused_until_.reset();
  if (pages.size() > 0) {
    phase_ = sequence_phase::running;
  } else {
    phase_ = chooser_ ? sequence_phase::preempted : sequence_phase::waiting;
  }
}

void sequence::found(std::uint32_t rows) noexcept {
  const std::uint32_t known = std::max(computed_, furthest_);
  if (rows > known) cached_ += std::min(rows, prompt_tokens()) - std::min(known, prompt_tokens());
  computed_ = rows;
}

void sequence::give_back(page_pool& pool) {
  pages.release(pool);
  computed_ = named_ = 0;
  draws_again_ = false;
  if (constrained()) set_mask_late(false);
  last_name_ = root_;
}

void sequence::preempt(page_pool& pool) {
  assert(in_batch() || rests());
  lose_rows(pool);
  ++preemptions_;
}

void sequence::strand(page_pool& pool) {
  assert(!ended());
  if (!in_batch() && !rests()) return;
  if (!samples()) scored_.clear();  // a failed device may have given the last of them
  lose_rows(pool);
}

void sequence::lose_rows(page_pool& pool) {
  furthest_ = std::max(furthest_, computed_);
  give_back(pool);
  awaited_.forget();
  if (!rests()) phase_ = sequence_phase::preempted;
}

sequence::accepted sequence::accept(token t, const token_table& text,
                                    const kernels::draw_logprobs* logprobs) {
  assert(phase_ == sequence_phase::running || rests());
  ++sampled_;
  if (samples()) {
    max_gap_ = std::max(max_gap_, t.at - last_at_);
  } else {
    how_.first_token = t.at;
  }
  last_at_ = t.at;
  if (output_.size() >= min_tokens_ && is_ending(t.id)) return last(finish_reason::stop);
  output_.push_back(t);
  if (logprobs) logprobs_.add(*logprobs);
  chooser_->accept(t.id);
  if (!watched_) {
    decided_ = static_cast<std::uint32_t>(output_.size());
  } else if (const auto did = watch(text); did != accepted::goes_on) {
    return did;
  }
  if (output_.size() == max_output_ && !is_full()) return last(finish_reason::length);
  return accepted::goes_on;
}

void sequence::let_leave() {
  shifts_.push_back({.at = max_output_, .tokens = shift_});
  left_ += shift_;
  max_output_ += std::min(shift_, asked.max_tokens - max_output_);
  output_.reserve(max_output_);
}

void sequence::come_back(std::uint32_t place, page_pool& pool) {
  if (shifts_.empty() || shifts_.back().at <= place) return;
  for (; !shifts_.empty() && shifts_.back().at > place; shifts_.pop_back()) {
    left_ -= shifts_.back().tokens;
    max_output_ = shifts_.back().at;
  }
  give_back(pool);
}

void sequence::shift(page_pool& pool) {
  assert(is_full() && !awaits() && (in_batch() || rests()));
  furthest_ = std::max(furthest_, computed_);
  give_back(pool);
  let_leave();
}

sequence::accepted sequence::watch(const token_table& text) {
  const auto verdict = watch_->take(output_, text);
  decided_ = std::max(watch_->decided(), delivered_);  // spoken tokens were decided by tokens behind them
  switch (verdict) {
    case output_watch::verdict::goes_on:
      return accepted::goes_on;
    case output_watch::verdict::banned_string:
      return accepted::banned;
    case output_watch::verdict::repetition:
      return last(finish_reason::repetition);
    case output_watch::verdict::stop_string:
      break;
  }
  how_.stop_string = watch_->which();
  if (const auto bytes = watch_->shown_bytes()) how_.shown_bytes = *bytes;
  return last(finish_reason::stop);
}

std::optional<std::uint32_t> sequence::place_to_try_again(const token_table& text) const {
  std::uint32_t place = std::max(watch_->banned_from(output_, text), decided_);
  if (constrained())
    while (place < output_.size() && mask_->was_forced(place)) ++place;
  if (place == output_.size() || went_back_ == most_going_back) return std::nullopt;
  if (chooser_->attempts(place) == most_attempts) return std::nullopt;
  return place;
}

void sequence::go_back(std::uint32_t place, const token_table& text, page_pool& pool) {
  assert(!ended() && !awaits() && decided_ <= place && place < output_.size());
  ++went_back_;
  const auto taken = output().subspan(place);
  sampled_ -= static_cast<std::uint32_t>(taken.size());
  chooser_->go_back(taken);
  watch_->go_back(output_, place, text);
  if (top_logprobs_ >= 0) logprobs_.drop(taken.size());
  output_.erase(output_.begin() + place, output_.end());
  come_back(place, pool);
  keep_rows(pool);
}

void sequence::keep_rows(page_pool& pool) {
  furthest_ = std::max(furthest_, computed_);
  if (named_ * page_tokens > length()) {
    named_ = length() / page_tokens;
    pages.shrink(pool, named_);
    last_name_ = named_ > 0 ? pool.names().name_of(pages.all()[named_ - 1]) : root_;
    computed_ = named_ * page_tokens;
  }
  computed_ = std::min(computed_, length());
  draws_again_ = computed_ == length();
}

void sequence::end_before_banned(const token_table& text) {
  watch_->end_before_banned(output_, text);
  decided_ = std::max(watch_->decided(), delivered_);
  if (const auto bytes = watch_->shown_bytes()) how_.shown_bytes = *bytes;
}

void sequence::close(finish_reason why, page_pool& pool, std::optional<error> fault) {
  give_back(pool);
  end(why, std::move(fault));
}

void sequence::end(finish_reason why, std::optional<error> fault) {
  assert(!ended() && pages.size() == 0);
  awaited_.forget();
  if (!watch_ || !watch_->cut_off()) decided_ = static_cast<std::uint32_t>(output_.size());
  phase_ = sequence_phase::ended;
  how_.reason = why;
  how_.input_tokens = prompt_tokens();
  how_.output_tokens = sampled_;
  how_.cached_tokens = cached_;
  how_.shifts = static_cast<std::uint32_t>(shifts_.size());
  how_.scheduled = scheduled;
  if (samples()) how_.last_token = last_at_;
  how_.max_gap = max_gap_;
  how_.fault = std::move(fault);
  how_.prompt_logprobs = scored_.all();
}

void sequence::write_tail() {
  const std::span<const token> tail = output().subspan(delivered_, decided_ - delivered_);
  const bool plain = top_logprobs_ < 0;
  const std::size_t taken =
      plain ? sink_->write(tail) : sink_->write_with_logprobs(tail, logprobs_.first(tail.size()));
  assert(taken <= tail.size());
  delivered_ += static_cast<std::uint32_t>(taken);
  if (!plain) logprobs_.take(taken);
}

bool sequence::settle() {
  assert(ended());
  offer();
  if (tail_waits()) return false;
  sink_->finish(how_);
  return true;
}

void sequence::settle_now() {
  if (settle()) return;
  decided_ = delivered_;
  sink_->finish(how_);
}

}  // namespace weir::core
