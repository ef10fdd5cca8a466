#include "core/sample/dry.h"

#include <algorithm>
#include <cmath>

namespace weir::core {
namespace {

// How many tokens have come since the last breaker.
std::uint32_t since_breaker(const token_history& of, const dry_breakers* breakers) {
  std::size_t end = of.size();
  while (end > 0 && !(breakers && breakers->end_at(of, end))) --end;
  return static_cast<std::uint32_t>(of.size() - end);
}

}  // namespace

bool dry_breakers::end_at(const token_history& of, std::size_t end) const {
  if (single.contains(of[end - 1])) return true;
  return std::ranges::any_of(longer, [&](const text& t) {
    return end > t.tail.size() && of.ends_with(t.tail, end) && t.heads.contains(of[end - t.tail.size() - 1]);
  });
}

dry_penalties::dry_penalties(const sampling_params& p, const token_history& of, std::uint32_t most,
                             std::uint32_t vocab_size)
    : multiplier_(static_cast<double>(p.dry_multiplier)),
      base_(static_cast<double>(p.dry_base)),
      allowed_(p.dry_allowed_length),
      range_(p.dry_range),
      breakers_(p.dry_sequence_breakers),
      matches_(of, most, vocab_size, since_breaker(of, breakers_.get())) {
  now_.reserve(most);
  update(of);
}

std::uint64_t dry_penalties::bytes_for(std::uint32_t most, std::uint32_t vocab_size) noexcept {
  return suffix_matches::bytes_for(most, vocab_size) + std::uint64_t{most} * sizeof(penalty);
}

void dry_penalties::add(const token_history& of) {
  matches_.add(of);
  if (breakers_ && breakers_->end_at(of, of.size())) matches_.forget();
  update(of);
}

void dry_penalties::update(const token_history& of) {
  now_.clear();
  const std::size_t first = range_ == 0 ? 0 : of.size() - std::min<std::size_t>(of.size(), range_);
  for (const auto& m : matches_.all()) {
    if (m.place < first) break;  // the latest place comes first
    const std::size_t length = std::min<std::size_t>(m.length, m.place - first + 1);
    const token_id next = of[m.place + 1];
    if (length < allowed_ || (breakers_ && breakers_->single.contains(next))) continue;
    const auto exact = static_cast<float>(length);  // a float has every length below 2^24
    if (!now_.empty() && now_.back().id == next)
      now_.back().minus = std::max(now_.back().minus, exact);
    else
      now_.push_back({next, exact});
  }
  std::ranges::sort(now_, [](const penalty& a, const penalty& b) {
    return a.id < b.id || (a.id == b.id && a.minus > b.minus);
  });
  const auto same = std::ranges::unique(now_, {}, &penalty::id);
  now_.erase(same.begin(), same.end());
  for (penalty& p : now_) {
    const double beyond = static_cast<double>(p.minus) - allowed_;
    p.minus = static_cast<float>(std::min(multiplier_ * std::pow(base_, beyond), 1e30));
  }
}

}  // namespace weir::core
