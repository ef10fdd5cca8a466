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
         s.next_row() >= s.prompt_tokens() && s.pending() <= grammar::job_mask::most_forced;
}

// The paused sequence keeps pages, and its pause is over: it only needs a place in the batch.
bool returns(const sequence& s, time_point now) { return s.pages.size() > 0 && *s.paused_until() <= now; }

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
  for (auto* all : {&running_, &paused_}) {
    const auto it = std::ranges::find(*all, &s, &std::unique_ptr<sequence>::get);
    if (it == all->end()) continue;
    auto taken = std::move(*it);
    all->erase(it);
    return taken;
  }
  return nullptr;
}

void scheduler::pause(sequence& s, time_point until) {
  if (!s.paused_until()) {
    paused_.emplace_back();  // first, since it may throw
    paused_.back() = take(s);
  }
  s.pause(until);
}

bool scheduler::preempt_paused() {
  const auto kept_after = [](const std::unique_ptr<sequence>& a, const std::unique_ptr<sequence>& b) {
    return std::tuple(a->pages.size() > 0, b->asked.priority, a->arrival) <
           std::tuple(b->pages.size() > 0, a->asked.priority, b->arrival);
  };
  const auto least = std::ranges::max_element(paused_, kept_after);
  if (least == paused_.end() || (*least)->pages.size() == 0) return false;
  (*least)->preempt(pool_);
  ++changes_.preemptions;
  return true;
}

void scheduler::queue_resumed(time_point now) {
  auto queue = [&](std::unique_ptr<sequence>& s) {
    if (s->pages.size() > 0 || *s->paused_until() > now) return;
    s->resume();
    waiting_.put_back(std::move(s));
    seen_.running = std::numeric_limits<std::size_t>::max();  // the queue has changed
  };
  sweep(paused_, queue);
}

void scheduler::return_paused(int priority, time_point now) {
  const auto later = [&](const std::unique_ptr<sequence>& a, const std::unique_ptr<sequence>& b) {
    return std::tuple(returns(*a, now), a->asked.priority, b->arrival) <
           std::tuple(returns(*b, now), b->asked.priority, a->arrival);
  };
  while (running_.size() < max_batch_) {
    const auto first = std::ranges::max_element(paused_, later);
    if (first == paused_.end() || !returns(**first, now) || (*first)->asked.priority < priority) return;
    sequence& s = **first;
    if (!s.pages.grow(pool_, s.expected())) {
      preempt_paused();  // may preempt `s` itself, which queue_resumed() then queues
      continue;
    }
    s.resume();
    running_.push_back(std::move(*first));
    paused_.erase(first);
    if (!s.decoding()) prompts_.push_back(&s);
  }
}

time_point scheduler::next_resume(time_point now) const noexcept {
  time_point next = time_point::max();
  for (const auto& s : paused_)
    if (running_.size() < max_batch_ || !returns(*s, now)) next = std::min(next, *s->paused_until());
  return next;
}

const batch& scheduler::plan(time_point now) {
  changes_ = {};
  grow();
  if (!paused_.empty()) queue_resumed(now);
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
      if (preempt_paused()) continue;
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
  constexpr int any = std::numeric_limits<int>::min();
  if (waiting_.empty() || look() == seen_) {
    if (!paused_.empty()) return_paused(any, now);
    return;
  }
  blocked_.clear();
  const auto passed_often = [](const sequence* s) { return s->passed >= most_passes; };
  for (auto at = waiting_.begin(); at != waiting_.end() && running_.size() < max_batch_;) {
    sequence& s = *at->second;
    if (!paused_.empty()) return_paused(s.asked.priority, now);
    if (running_.size() == max_batch_) break;
    if (s.asked.sink->abandoned()) {
      abandoned_.push_back(waiting_.take(at));
    } else if (take_room(s)) {
      enter(at, now);
    } else {
      blocked_.push_back(&s);
      ++at;
    }
    if (blocked_.size() == most_blocked || std::ranges::any_of(blocked_, passed_often)) break;
  }
  if (!paused_.empty()) return_paused(any, now);
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
  } while (preempt_paused());
  return false;
}

void scheduler::enter(waiting_line::position& at, time_point now) {
  for (sequence* b : blocked_) ++b->passed;
  sequence& s = *running_.emplace_back(waiting_.take(at));
  s.enter(admissions_++, now, model_.info().vocab_size);
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
      if (s.pending() == 0 && !s.mask_late()) continue;  // its last token is in flight
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
    const bool begun = !slo_.set() || s->how().first_token.has_value();
    demand_.push_back({s->pending(), begun ? duration::max() : s->asked.created + slo_.ttft - now});
  }
  return budget_.rows(decoding, demand_);
}

bool scheduler::too_early(const sequence& s, std::uint32_t rows, time_point now) {
  const time_point due = model_.due({.ordinal = s.ordinal(),
                                     .position = s.next_row(),
                                     .rows = rows,
                                     .prompt_tokens = s.prompt_tokens(),
                                     .last = s.computed_at});
  if (due <= now) return false;
  next_due_ = std::min(next_due_, due);
  return true;
}

void scheduler::add_rows(sequence& s, std::uint32_t rows, time_point now) {
  if (paced_ && too_early(s, rows, now)) return;
  const std::uint32_t position = s.next_row();
  const bool draws = rows == s.pending() || s.mask_late();
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
