#include "core/sample/recent_penalties.h"

#include <algorithm>

#include "core/sample/steps.h"

namespace weir::core {
namespace {

std::uint64_t window(const sampling_params& p) {
  return static_cast<std::uint64_t>(p.repetition_range) + p.repetition_decay;
}

std::size_t most_entries(const sampling_params& p, std::uint32_t vocab_size, std::size_t prompt_tokens,
                         std::uint32_t max_output) {
  return std::min<std::uint64_t>(vocab_size, std::min<std::uint64_t>(prompt_tokens, window(p)) + max_output);
}

}  // namespace

bool has_recent_penalties(const sampling_params& p) { return p.repetition_range >= 0 && has_penalties(p); }

std::uint64_t recent_penalties::bytes_for(const sampling_params& p, std::uint32_t vocab_size,
                                          std::size_t prompt_tokens, std::uint32_t max_output) noexcept {
  const std::size_t entries = most_entries(p, vocab_size, prompt_tokens, max_output);
  return entries * sizeof(entry) + token_index::bytes_for(entries);
}

recent_penalties::recent_penalties(const sampling_params& p, std::uint32_t vocab_size,
                                   const token_history& of, std::uint32_t max_output)
    : range_(static_cast<std::uint64_t>(p.repetition_range)),
      decay_(p.repetition_decay),
      repetition_(static_cast<double>(p.repetition_penalty)),
      frequency_(static_cast<double>(p.frequency_penalty)),
      presence_(static_cast<double>(p.presence_penalty)),
      prompt_size_(of.prompt_size()),
      size_(of.prompt_size()),
      tokens_(most_entries(p, vocab_size, of.prompt_size(), max_output)) {
  entries_.reserve(most_entries(p, vocab_size, of.prompt_size(), max_output));
  const std::size_t seen = std::min<std::uint64_t>(size_, window(p));
  for (std::size_t i = size_ - seen; i < size_; ++i) find(of[i]).end = i + 1;
  while (size_ < of.size()) add(of);
}

recent_penalties::entry& recent_penalties::find(token_id id) {
  const std::size_t number = tokens_.number(id);
  if (number == entries_.size()) entries_.push_back({.id = id});
  return entries_[number];
}

// Token `size_` of the history is the next.
void recent_penalties::add(const token_history& of) {
  entry& latest = find(of[size_]);
  latest.end = ++size_;
  ++latest.whole;
  // The place that comes to the end of a stretch of this many tokens, if it is in the output.
  const auto behind = [&](std::uint64_t tokens, auto then) {
    if (size_ > prompt_size_ + tokens) then(size_ - 1 - tokens);
  };
  behind(range_, [&](std::uint64_t place) {
    entry& e = find(of[place]);
    --e.whole;
    ++e.falling;
    e.falling_places += place;
  });
  behind(range_ + decay_, [&](std::uint64_t place) {
    entry& e = find(of[place]);
    --e.falling;
    e.falling_places -= place;
  });
}

double recent_penalties::share(std::uint64_t distance) const {
  if (distance < range_) return 1;
  if (distance >= range_ + decay_) return 0;
  return 1 - static_cast<double>(distance - range_) / static_cast<double>(decay_);
}

float recent_penalties::factor(double share) const {
  return static_cast<float>(1 + (repetition_ - 1) * share);
}

float recent_penalties::minus(const entry& e, double share) const {
  if (e.end <= prompt_size_) return 0;
  double times = e.whole;
  if (e.falling > 0) {
    const std::uint64_t first = size_ - 1 - range_;  // where shares begin to fall
    const auto distances = static_cast<double>(e.falling * first - e.falling_places);
    times += e.falling - distances / static_cast<double>(decay_);
  }
  return static_cast<float>(presence_ * share + frequency_ * times);
}

void apply_penalties(std::span<float> logits, const recent_penalties& seen) {
  seen.for_each([&](token_id id, float factor, float minus) {
    float& l = logits[static_cast<std::size_t>(id)];
    l = (l > 0 ? l / factor : l * factor) - minus;
  });
}

}  // namespace weir::core
