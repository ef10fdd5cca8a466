#include "core/stop/output_watch.h"

#include <utility>

namespace weir::core {

output_watch::output_watch(stop_strings stops, std::uint32_t max_repeats, std::uint32_t min_tokens,
                           bool shows_stop)
    : min_tokens_(min_tokens), shows_stop_(shows_stop), stops_(std::move(stops)) {
  if (max_repeats > 0) loops_.emplace(max_repeats);
}

output_watch::verdict output_watch::take(std::span<const token> output, const token_table& text) {
  const token_id id = output.back().id;
  if (stops_.empty()) {
    decided_ = static_cast<std::uint32_t>(output.size());
  } else if (output.size() > min_tokens_) {
    if (const auto shown = feed(id, text)) {
      cut(output, *shown, text);
      return verdict::stop_string;
    }
    decide(output, text_bytes_ - stops_.pending(), text);
  } else {
    text_bytes_ += text[id].size();
    decide(output, text_bytes_, text);
  }
  const bool repeats = loops_ && loops_->feed(output);
  return repeats && output.size() >= min_tokens_ ? verdict::repetition : verdict::goes_on;
}

std::optional<std::uint64_t> output_watch::feed(token_id id, const token_table& text) {
  const std::uint64_t watched_from = text_bytes_ - stops_.fed();
  text_bytes_ += text[id].size();
  const auto start = stops_.feed(text[id]);
  if (!start) return std::nullopt;
  return watched_from + (shows_stop_ ? stops_.fed() : *start);
}

void output_watch::decide(std::span<const token> output, std::uint64_t bytes, const token_table& text) {
  while (decided_ < output.size()) {
    const std::uint64_t end = decided_bytes_ + text[output[decided_].id].size();
    if (end > bytes) return;
    decided_bytes_ = end;
    ++decided_;
  }
}

void output_watch::cut(std::span<const token> output, std::uint64_t bytes, const token_table& text) {
  matched_ = true;
  while (decided_bytes_ < bytes) decided_bytes_ += text[output[decided_++].id].size();
  if (decided_bytes_ > bytes) shown_bytes_ = bytes;
}

}  // namespace weir::core
