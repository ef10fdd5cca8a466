#include "core/schedule/sequence.h"

#include <algorithm>
#include <cassert>

namespace weir::core {

sequence::sequence(job j, const model_info& m, std::uint32_t longest)
    : asked(std::move(j)),
      max_output(std::min(asked.max_tokens, longest - prompt_tokens())),
      last_name(root_name(asked.cache_salt)) {
  if (!asked.ignore_eos) endings = m.stop_ids;
  endings.insert(endings.end(), asked.stop_token_ids.begin(), asked.stop_token_ids.end());
}

void sequence::enter(std::uint64_t admission, time_point now, std::uint32_t vocab_size) {
  ordinal = admission;
  preempted = false;
  computed_at = now;
  if (chooser) return;
  chooser.emplace(
      asked.sampling, vocab_size, asked.prompt,
      sampler::limits{.max_tokens = max_output, .min_tokens = asked.min_tokens, .endings = endings});
  stops = stop_matcher(asked.stop);
  if (asked.max_repeats > 0) loops.emplace(asked.max_repeats);
  output.reserve(max_output);
  pages.reserve(pages_for(std::uint64_t{prompt_tokens()} + max_output));
}

void sequence::found(std::uint32_t rows) noexcept {
  const std::uint32_t known = std::max(computed, furthest_);
  if (rows > known) cached += std::min(rows, prompt_tokens()) - std::min(known, prompt_tokens());
  computed = rows;
}

void sequence::give_back(page_pool& pool) {
  pages.release(pool);
  computed = named = 0;
  draw_at = -1;  // whatever comes of it: it will be drawn again, if it is wanted
  last_name = root_name(asked.cache_salt);
}

void sequence::preempt(page_pool& pool) {
  furthest_ = std::max(furthest_, computed);
  give_back(pool);
  preempted = true;
  ++preemptions;
}

std::optional<finish_reason> sequence::accept(token t, const token_table& text) {
  assert(chooser && !ended);
  note_time(t.at);
  ++sampled;
  const bool may_stop = output.size() >= asked.min_tokens;
  if (may_stop && std::find(endings.begin(), endings.end(), t.id) != endings.end())
    return finish_reason::stop;
  output.push_back(t);
  chooser->accept(t.id);
  if (stops.empty()) {
    decided = static_cast<std::uint32_t>(output.size());
  } else if (may_stop) {
    if (const auto start = judge(t.id, text)) {
      cut(*start, text);
      return finish_reason::stop;
    }
    decide(text_bytes_ - stops.pending(), text);
  } else {
    text_bytes_ += text[t.id].size();
    decide(text_bytes_, text);
  }
  if (loops && loops->feed(output) && output.size() >= asked.min_tokens) return finish_reason::repetition;
  if (output.size() == max_output) return finish_reason::length;
  return std::nullopt;
}

// Where in the output's bytes the stop string begins that this token completes. Stop strings are looked for
// behind the first min_tokens tokens only.
std::optional<std::uint64_t> sequence::judge(token_id id, const token_table& text) {
  const std::uint64_t watched_from = text_bytes_ - stops.fed();
  text_bytes_ += text[id].size();
  const auto start = stops.feed(text[id]);
  if (!start) return std::nullopt;
  return watched_from + *start;
}

// Decides the tokens that end within the first `bytes` of the text.
void sequence::decide(std::uint64_t bytes, const token_table& text) {
  while (decided < output.size()) {
    const std::uint64_t end = decided_bytes_ + text[output[decided].id].size();
    if (end > bytes) return;
    decided_bytes_ = end;
    ++decided;
  }
}

// Decides the tokens that begin within the first `bytes` of the text, which is all that may be shown of them.
void sequence::cut(std::uint64_t bytes, const token_table& text) {
  matched_ = true;
  while (decided_bytes_ < bytes) decided_bytes_ += text[output[decided++].id].size();
  if (decided_bytes_ > bytes) times_.shown_bytes = bytes;
}

void sequence::note_time(time_point at) {
  if (times_.last_token) times_.max_gap = std::max(times_.max_gap, at - *times_.last_token);
  if (!times_.first_token) times_.first_token = at;
  times_.last_token = at;
}

void sequence::close(finish_reason why, page_pool& pool, std::optional<error> fault) {
  assert(!ended);
  give_back(pool);
  if (!matched_) decided = static_cast<std::uint32_t>(output.size());
  ended = times_;
  ended->reason = why;
  ended->input_tokens = prompt_tokens();
  ended->output_tokens = sampled;
  ended->cached_tokens = cached;
  ended->scheduled = scheduled;
  ended->fault = std::move(fault);
}

std::size_t sequence::offer() {
  if (!tail_waits()) return 0;
  const std::size_t taken = asked.sink->write(std::span(output).subspan(delivered, decided - delivered));
  assert(taken <= decided - delivered);
  delivered += static_cast<std::uint32_t>(taken);
  return taken;
}

bool sequence::settle() {
  assert(ended);
  offer();
  if (tail_waits()) return false;
  asked.sink->finish(*ended);
  return true;
}

void sequence::settle_now() {
  if (settle()) return;
  decided = delivered;
  asked.sink->finish(*ended);
}

}  // namespace weir::core
