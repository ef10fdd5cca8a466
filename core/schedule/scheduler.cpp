#include "core/schedule/scheduler.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

#include "core/grammar/masks/job_mask.h"
#include "core/schedule/prefix_reuse.h"

namespace weir::core {
namespace {

// Admission passes over at most this many sequences without room to find one that has room.
constexpr std::size_t most_blocked = 16;

// Most rows of a step that are scored for the logprobs of prompts: the host looks at the logits of each.
constexpr std::uint32_t most_scored = 16;

// Of two sequences of the batch, `a` is preempted after `b`.
bool preempted_after(const std::unique_ptr<sequence>& a, const std::unique_ptr<sequence>& b) {
  return std::tuple(a->in_batch(), b->asked.priority, a->arrival) <
         std::tuple(b->in_batch(), a->asked.priority, b->arrival);
}

// In a batch of at most this many sequences, the rows of forced tokens are computed as one slice. In a larger
// batch the device is busy with the rows of the sequences, and a slice of a few rows costs it more than one
// row a step (measured on an H100, 8B: with 64 sequences a quarter more tokens a second came together, with
// 256 an eighth fewer).
constexpr std::size_t forced_together = 128;

// Whether forced tokens, and nothing else, are to be computed.
bool is_forced(const sequence& s) {
  return s.constrained() && s.phase() != sequence_phase::held && !s.output().empty() &&
         s.next_row() >= s.prompt_rows() && s.pending() <= grammar::job_mask::most_forced;
}

}  // namespace

scheduler::scheduler(std::uint32_t max_batch, const prompt_budget::targets& t, page_pool& pool,
                     const model& m)
    : max_batch_(max_batch), pool_(pool), model_(m), paced_(m.info().paced), budget_(t), slo_(t.slo) {
  batch_.tokens.reserve(std::size_t{max_batch} + t.rows);
  batch_.slices.reserve(max_batch);
  batch_.copies.reserve(max_batch);
  running_.reserve(max_batch);
  chosen_.reserve(max_batch);
  prompts_.reserve(max_batch);
  demand_.reserve(max_batch);
  computing_.reserve(max_batch);
  blocked_.reserve(most_blocked);
}

std::unique_ptr<sequence> scheduler::take(const sequence& s) {
  if (auto found = waiting_.take(s)) return found;
  for (auto* all : {&running_, &resting_}) {
    const auto it = std::ranges::find(*all, &s, &std::unique_ptr<sequence>::get);
    if (it == all->end()) continue;
    auto taken = std::move(*it);
    all->erase(it);
    return taken;
  }
  return nullptr;
}

void scheduler::adopt(std::unique_ptr<sequence>&& s) {
  if (!s->rests()) return waiting_.adopt(std::move(s));
  resumed_.reserve(resting_.size() + 1);
  sequence& added = *s;
  resting_.push_back(std::move(s));
  waiting_.count_arrival(added.arrival);
  if (added.phase() == sequence_phase::returning) ++resumes_;
  if (added.paused_until()) next_resume_ = std::min(next_resume_, *added.paused_until());
}

void scheduler::strand() {
  for (const auto& s : resting_)
    if (!s->ended()) s->strand(pool_);
  const auto put_back = [&](std::unique_ptr<sequence>& s) {
    if (s->ended()) return;
    s->strand(pool_);
    waiting_.put_back(std::move(s));
  };
  sweep(running_, put_back);
}

void scheduler::move_pages(page_id first, std::span<const page_id> now_at) {
  assert(batch_.copies.empty());
  for (const auto* all : {&running_, &resting_})
    for (const auto& s : *all) s->pages.move(first, now_at);
}

void scheduler::pause(sequence& s, time_point until) {
  if (!s.rests()) {
    // what may throw comes first, also what end_pauses() would allocate
    if (resting_.size() == resting_.capacity()) resting_.reserve(2 * resting_.size() + 8);
    resumed_.reserve(resting_.capacity());
    resting_.push_back(take(s));
  }
  s.pause(until);
  next_resume_ = std::min(next_resume_, until);
}

void scheduler::resume(sequence& s) noexcept {
  s.line_up();
  ++resumes_;
}

std::uint32_t scheduler::returning() const noexcept {
  return static_cast<std::uint32_t>(
      std::ranges::count(resting_, sequence_phase::returning, [](const auto& s) { return s->phase(); }));
}

void scheduler::end_pauses(time_point now) {
  resumed_.clear();
  if (now < next_resume_) return;
  next_resume_ = time_point::max();
  for (const auto& s : resting_) {
    if (s->phase() != sequence_phase::paused) continue;
    if (*s->paused_until() <= now) {
      resumed_.push_back(s.get());
      resume(*s);
    } else {
      next_resume_ = std::min(next_resume_, *s->paused_until());
    }
  }
}

bool scheduler::preempt_resting() {
  const auto order = [](const sequence& s) {
    return std::tuple(s.pages.size() > 0, s.phase() == sequence_phase::paused,
                      -std::int64_t{s.asked.priority}, s.arrival);
  };
  const auto first = std::ranges::max_element(resting_, {}, [&](const auto& s) { return order(*s); });
  if (first == resting_.end() || (*first)->pages.size() == 0) return false;
  (*first)->preempt(pool_);
  ++changes_.preemptions;
  return true;
}

scheduler::rest_position scheduler::next_to_return() {
  // the keys behind that of the last one come first, then the others
  const auto order = [&](const sequence& s) {
    return std::tuple(-std::int64_t{s.asked.priority}, s.asked.key - last_key_ - 1, s.arrival);
  };
  auto first = resting_.end();
  for (auto at = resting_.begin(); at != resting_.end(); ++at) {
    const sequence& s = **at;
    if (s.phase() != sequence_phase::returning) continue;
    if (std::ranges::find(blocked_, &s) != blocked_.end()) continue;
    if (first == resting_.end() || order(s) < order(**first)) first = at;
  }
  return first;
}

bool scheduler::returns_first(rest_position back, waiting_line::position at) {
  if (back == resting_.end() || at == waiting_.end()) return at == waiting_.end();
  const int priority = (*back)->asked.priority, of_line = at->second->asked.priority;
  return priority == of_line ? !line_is_next_ : priority > of_line;
}

bool scheduler::bring_back(rest_position back, time_point now) {
  sequence& s = **back;
  while (s.pages.size() > 0 && !s.pages.grow(pool_, s.expected())) preempt_resting();  // may be `s`
  s.resume();
  const bool kept = s.in_batch();
  if (!kept && !take_room(s)) {
    s.line_up();
    return false;
  }
  auto taken = std::move(*back);
  resting_.erase(back);
  last_key_ = s.asked.key;
  if (!kept) {
    enter(std::move(taken), now);
    return true;
  }
  running_.push_back(std::move(taken));
  if (!s.decoding()) prompts_.push_back(&s);
  return true;
}

const batch& scheduler::plan(time_point now) {
  changes_ = {};
  grow();
  end_pauses(now);
  admit(now);
  share();
  choose(now);
  return batch_;
}

void scheduler::grow() {
  prompts_.clear();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    fetch_ahead(running_, i);
    sequence& s = *running_[i];
    if (!s.decoding()) prompts_.push_back(&s);
    while (s.in_batch() && !s.pages.grow(pool_, s.expected())) {
      if (preempt_resting()) continue;
      (*std::ranges::max_element(running_, preempted_after))->preempt(pool_);
      ++changes_.preemptions;
    }
  }
  if (changes_.preemptions == 0) return;
  std::erase_if(prompts_, [](const sequence* s) { return !s->in_batch(); });
  auto put_back = [&](std::unique_ptr<sequence>& s) {
    if (!s->in_batch()) waiting_.put_back(std::move(s));
  };
  sweep(running_, put_back);
}

void scheduler::admit(time_point now) {
  if (look() == seen_) return;
  blocked_.clear();
  const auto passed_often = [](const sequence* s) { return s->passed >= most_passes; };
  auto at = waiting_.begin();
  auto back = next_to_return();
  while (running_.size() < max_batch_ && (at != waiting_.end() || back != resting_.end())) {
    if (returns_first(back, at)) {
      sequence& s = **back;
      if (bring_back(back, now))
        line_is_next_ = true;
      else
        blocked_.push_back(&s);
      back = next_to_return();
    } else if (sequence& s = *at->second; s.asked.sink->abandoned()) {
      abandoned_.push_back(waiting_.take(at));
    } else if (take_room(s)) {
      enter(waiting_.take(at), now);
      line_is_next_ = false;
    } else {
      blocked_.push_back(&s);
      ++at;
    }
    if (blocked_.size() == most_blocked || std::ranges::any_of(blocked_, passed_often)) break;
  }
  seen_ = look();
}

bool scheduler::take_room(sequence& s) {
  const std::uint32_t cached = s.cached();
  do {
    share_pages(s, pool_, batch_.copies.empty());
    if (take_pages(s, pool_, static_cast<std::uint32_t>(running_.size()), batch_.copies)) {
      changes_.prompt_tokens += s.cached() - cached;
      return true;
    }
    s.give_back(pool_);
    s.uncount_cached(cached);
  } while (preempt_resting());
  return false;
}

void scheduler::enter(std::unique_ptr<sequence> waited, time_point now) {
  for (sequence* b : blocked_) ++b->passed;
  sequence& s = *running_.emplace_back(std::move(waited));
  s.enter(admissions_++, now, model_.info().vocab_size);
  if (!s.output().empty() && !s.scheduled) s.scheduled = now;
  s.rows_before = all_prompt_rows_;
  prompts_.push_back(&s);
  ++changes_.entered;
}

void scheduler::share() {
  computing_.clear();
  for (sequence* s : prompts_) {
    s->hold(false);
    if (s->decoding()) continue;
    ++changes_.prefilling;
    const std::uint32_t cached = s->cached();
    const auto missing = share_pages(*s, pool_, batch_.copies.empty());
    changes_.prompt_tokens += s->cached() - cached;
    if (!missing) continue;
    s->hold(std::ranges::find(computing_, *missing) != computing_.end());
    if (s->phase() != sequence_phase::held) computing_.push_back(*missing);
  }
}

void scheduler::choose(time_point now) {
  batch_.clear();
  chosen_.clear();
  next_due_ = time_point::max();
  prompts_.clear();
  std::uint32_t decoding = 0;
  const bool one_by_one = running_.size() > forced_together;
  for (const auto& p : running_) {
    sequence& s = *p;
    if (s.decoding() || (one_by_one && is_forced(s))) {
      if (s.pending() == 0 && !s.repeats_row()) continue;  // its last token is in flight
      ++decoding;
      add_rows(s, 1, now);
    } else if (s.phase() != sequence_phase::held) {
      prompts_.push_back(&s);
    }
  }
  decode_rows_ = static_cast<std::uint32_t>(batch_.tokens.size());

  std::ranges::sort(prompts_, {},
                    [](const sequence* s) { return std::pair(s->pending() + s->rows_before, s->ordinal()); });
  const std::uint32_t most = decode_rows_ + prompt_rows_allowed(decoding, now);
  // Every sequence of the batch may need one row of logits; what is left is for prompts that are scored.
  std::uint32_t to_score =
      std::min(most_scored, max_batch_ + 1 - static_cast<std::uint32_t>(running_.size()));
  for (sequence* s : prompts_) {
    const auto left = most - static_cast<std::uint32_t>(batch_.tokens.size());
    if (left == 0) break;
    if (!s->scores()) {
      add_rows(*s, std::min(left, s->pending()), now);
    } else if (to_score > 0) {
      const std::uint32_t known = s->scored_rows() - std::min(s->scored_rows(), s->computed());
      const std::uint32_t rows = std::min({left, s->pending(), known + to_score});
      add_rows(*s, rows, now);
      to_score -= std::min(to_score, rows);
    }
  }
  prompt_rows_ = static_cast<std::uint32_t>(batch_.tokens.size()) - decode_rows_;
  all_prompt_rows_ += prompt_rows_;
  changes_.prompt_tokens += prompt_rows_;
  if (decoding > 0 && prompt_rows_ > 0) prompt_share_ = budget_.granted();
}

std::uint32_t scheduler::prompt_rows_allowed(std::uint32_t decoding, time_point now) {
  demand_.clear();
  for (const sequence* s : prompts_) {
    const bool begun = !slo_.set() || s->sampled() > 0;
    demand_.push_back({s->pending(), begun ? duration::max() : s->asked.created + slo_.ttft - now});
  }
  return budget_.rows(decoding, demand_);
}

bool scheduler::too_early(const sequence& s, std::uint32_t rows, time_point now) {
  const time_point due = model_.due({.ordinal = s.ordinal(),
                                     .position = s.next_row(),
                                     .rows = rows,
                                     .prompt_tokens = s.prompt_rows(),
                                     .last = s.computed_at});
  if (due <= now) return false;
  next_due_ = std::min(next_due_, due);
  return true;
}

void scheduler::add_rows(sequence& s, std::uint32_t rows, time_point now) {
  if (paced_ && too_early(s, rows, now)) return;
  const std::uint32_t position = s.next_row();
  const bool draws = rows == s.pending() || s.repeats_row();
  // field by field in its place: copying what was just written stalls the processor
  batch_slice& slice = batch_.slices.emplace_back();
  slice.first_row = static_cast<std::uint32_t>(batch_.tokens.size());
  slice.rows = rows;
  slice.position = position;
  slice.pages = s.pages.holding(position + rows);
  if (draws) slice.logits_row = static_cast<std::int32_t>(batch_.logits_rows++);
  if (position < s.prompt_tokens() && s.scores()) add_scored(s, slice);
  for (std::uint32_t at = position; at < position + rows; ++at) batch_.tokens.push_back(s.row_token(at));
  if (s.output().empty() && !s.scheduled) s.scheduled = now;
  chosen_.push_back(&s);
}

void scheduler::add_scored(const sequence& s, batch_slice& slice) {
  const std::uint32_t first = std::max(slice.position, s.scored_rows());
  const std::uint32_t end = std::min(slice.position + slice.rows, s.rows_to_score());
  if (first >= end) return;
  slice.first_scored = first - slice.position;
  slice.scored = end - first;
  slice.scored_logits = batch_.logits_rows;
  batch_.logits_rows += slice.scored;
  batch_.scored += slice.scored;
}

void scheduler::computed(time_point now) {
  batch_.copies.clear();
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    sequence& s = *chosen_[i];
    if (s.ended()) continue;  // its pages are gone
    s.set_computed(batch_.slices[i].position + batch_.slices[i].rows);
    if (paced_) s.computed_at = now;
    if (s.fills_page()) name_pages(s, pool_);
  }
}

}  // namespace weir::core
