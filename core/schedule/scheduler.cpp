#include "core/schedule/scheduler.h"

#include <algorithm>
#include <utility>

namespace weir::core {

scheduler::scheduler(std::uint32_t max_batch, prefill_budget::limits l) : budget_(l) {
  batch_.tokens.reserve(std::size_t{max_batch} + l.rows);
  batch_.slices.reserve(max_batch);
  batch_.copies.reserve(max_batch);
  chosen_.reserve(max_batch);
  prompts_.reserve(max_batch);
}

const batch& scheduler::plan(std::span<const std::unique_ptr<sequence>> running, const model& m,
                             time_point now) {
  batch_.clear();
  chosen_.clear();
  next_due_ = time_point::max();
  paced_ = m.info().paced;
  prompts_.clear();
  std::uint32_t decoding = 0;
  for (const auto& p : running) {
    sequence& s = *p;
    if (s.decoding()) {
      if (s.pending() == 0) continue;  // its last token is under way
      ++decoding;
      take(s, 1, m, now);
    } else if (!s.held) {
      prompts_.push_back(&s);
    }
  }
  decode_rows_ = static_cast<std::uint32_t>(batch_.tokens.size());

  std::ranges::sort(prompts_, {},
                    [](const sequence* s) { return std::pair(s->pending() + s->prompt_turn, s->ordinal); });
  const std::uint32_t most =
      decode_rows_ + budget_.rows(decoding, static_cast<std::uint32_t>(prompts_.size()));
  for (sequence* s : prompts_) {
    const auto left = most - static_cast<std::uint32_t>(batch_.tokens.size());
    if (left == 0) break;
    take(*s, std::min(left, s->pending()), m, now);
  }
  prompt_rows_ = static_cast<std::uint32_t>(batch_.tokens.size()) - decode_rows_;
  all_prompt_rows_ += prompt_rows_;
  return batch_;
}

void scheduler::take(sequence& s, std::uint32_t rows, const model& m, time_point now) {
  if (paced_) {
    const time_point due = m.due({.ordinal = s.ordinal,
                                  .position = s.computed,
                                  .rows = rows,
                                  .prompt_tokens = s.prompt_tokens(),
                                  .last = s.computed_at});
    if (due > now) {
      next_due_ = std::min(next_due_, due);
      return;
    }
  }
  const std::uint32_t position = s.computed, length = s.length();
  const bool draws = rows == s.pending();
  // field by field in its place: copying what was just written stalls
  batch_slice& slice = batch_.slices.emplace_back();
  slice.first_row = static_cast<std::uint32_t>(batch_.tokens.size());
  slice.rows = rows;
  slice.position = position;
  slice.pages = s.pages.holding(position + rows);
  if (draws) slice.logits_row = static_cast<std::int32_t>(batch_.logits_rows++);
  slice.seed = s.chooser->params().seed;
  slice.prompt_tokens = s.prompt_tokens();
  for (std::uint32_t at = position; at < position + rows; ++at)
    batch_.tokens.push_back(at < length ? s.token_at(at) : drawn_by(s.draw_at));
  if (s.output.empty() && !s.scheduled) s.scheduled = now;
  chosen_.push_back(&s);
}

void scheduler::observe(const load& l, duration took) {
  budget_.observe(l.decode_rows, l.prompt_rows, took, l.granted);
}

}  // namespace weir::core
