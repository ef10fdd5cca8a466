#include "core/stop/output_watch.h"

#include <algorithm>
#include <utility>

namespace weir::core {

output_watch::output_watch(rules r)
    : min_tokens_(r.min_tokens),
      healed_(r.healed),
      shows_stop_(r.shows_stop),
      stops_(std::move(r.stops)),
      banned_(std::move(r.banned), true),
      text_bytes_(r.healed) {
  if (r.max_repeats > 0) loops_.emplace(r.max_repeats);
  if (!banned_.empty()) decided_of_.reserve(r.max_output);
}

std::string_view output_watch::bytes_of(std::span<const token> output, std::size_t i,
                                        const token_table& text) const {
  const std::string_view all = text[output[i].id];
  return i > 0 ? all : all.substr(std::min<std::size_t>(healed_, all.size()));
}

output_watch::verdict output_watch::take(std::span<const token> output, const token_table& text) {
  const std::size_t last = output.size() - 1;
  const std::string_view bytes = bytes_of(output, last, text);
  if (last <= min_tokens_) stops_from_ = text_bytes_;
  text_bytes_ += bytes.size();
  std::optional<std::uint64_t> stop;
  if (last >= min_tokens_) stop = stops_.feed(bytes);
  if (const auto banned = banned_.feed(bytes)) {
    const std::uint64_t ends = healed_ + banned_.fed(), stop_ends = stops_from_ + stops_.fed();
    if (!stop || ends < stop_ends || (ends == stop_ends && shows_stop_)) {
      banned_at_ = healed_ + *banned;
      return verdict::banned_string;
    }
  }
  if (stop) {
    cut(output, stops_from_ + (shows_stop_ ? stops_.fed() : *stop), text);
    return verdict::stop_string;
  }
  if (stops_.empty() && banned_.empty())
    decided_ = static_cast<std::uint32_t>(output.size());
  else
    decide(output, text);
  const bool repeats = loops_ && loops_->feed(output);
  return repeats && output.size() >= min_tokens_ ? verdict::repetition : verdict::goes_on;
}

void output_watch::decide(std::span<const token> output, const token_table& text) {
  std::uint32_t to = token_of(output, text_bytes_ - stops_.pending(), text);
  if (!banned_.empty()) {
    const std::uint32_t begins = token_of(output, text_bytes_ - banned_.pending(), text);
    if (begins < output.size()) to = std::min(to, begins > 0 ? decided_of_[begins - 1] : 0);
    decided_of_.push_back(to);
  }
  for (; decided_ < to; ++decided_) decided_bytes_ += text[output[decided_].id].size();
}

void output_watch::cut(std::span<const token> output, std::uint64_t bytes, const token_table& text) {
  cut_off_ = true;
  while (decided_bytes_ < bytes) decided_bytes_ += text[output[decided_++].id].size();
  if (decided_bytes_ > bytes) shown_bytes_ = bytes;
}

std::uint32_t output_watch::token_of(std::span<const token> output, std::uint64_t at,
                                     const token_table& text) const {
  std::size_t found = output.size();
  for (std::uint64_t begins = text_bytes_; begins > at;) begins -= bytes_of(output, --found, text).size();
  return static_cast<std::uint32_t>(found);
}

void output_watch::go_back(std::span<const token> output, std::uint32_t kept, const token_table& text) {
  for (std::size_t i = kept; i < output.size(); ++i) text_bytes_ -= bytes_of(output, i, text).size();
  decided_of_.resize(kept);
  seek(stops_, stops_from_, output.first(kept), text);
  seek(banned_, healed_, output.first(kept), text);
  if (loops_) loops_->go_back(output.first(kept));
}

void output_watch::seek(stop_matcher& m, std::uint64_t from, std::span<const token> output,
                        const token_table& text) const {
  if (text_bytes_ <= from) return m.restart(0);
  std::size_t at = output.size();
  std::uint64_t begins = text_bytes_;
  while (begins > from && text_bytes_ - begins < m.longest()) begins -= bytes_of(output, --at, text).size();
  m.restart(begins - from);
  for (; at < output.size(); ++at) m.feed(bytes_of(output, at, text));
}

}  // namespace weir::core
