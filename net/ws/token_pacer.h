// token_pacer.h — pace "even": when each token of a response may be sent.
//
// A token is due one gap after the token before it, but neither before it was sampled nor more than 250 ms
// after. The first token is due at once. The gap is the mean gap of all tokens sampled so far, up to half as
// long again while the tokens' delay is less than 200 ms, and up to an eighth shorter above. So a delay
// builds up that serves as the buffer for bursts and stalls.
//
// Pure: times are µs on one clock, and the caller passes them in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "actors/token_log.h"

namespace weir::net {

class token_pacer {
 public:
  static constexpr std::int64_t longest_delay_us = 250'000, usual_delay_us = 200'000;

  // `from`: tokens that are sent already.
  explicit token_pacer(std::uint32_t from) : first_(from), released_(from) {}

  // The number of tokens of the job that may have been sent by `now`. `log` has the tokens after the first
  // `base` of them. The times of the log and `now` count from the same moment. REQUIRES: `base` is at most
  // what was sent.
  std::uint32_t due(const actors::token_log& log, std::uint32_t base, std::int64_t now) {
    next_due_.reset();
    const std::uint32_t published = base + log.whole();
    if (released_ == published) return released_;
    if (released_ == first_) first_sampled_ = log.at_us(released_ - base);
    const std::uint32_t gaps = published - 1 - first_;
    const std::int64_t mean_gap = gaps > 0 ? (log.at_us(log.whole() - 1) - first_sampled_) / gaps : 0;
    for (; released_ < published; ++released_) {
      const std::int64_t sampled = log.at_us(released_ - base);
      const std::int64_t at = released_ == first_ ? sampled : due_after_last(mean_gap, sampled);
      if (at > now) {
        next_due_ = at;
        break;
      }
      last_due_ = at;
    }
    return released_;
  }
  // The first `count` tokens of the job were sent: a character goes out whole, with tokens that are not due
  // yet.
  void sent(std::uint32_t count) noexcept { released_ = std::max(released_, count); }
  // When the next token is due; nullopt: the last call of due() found no token that has to wait.
  std::optional<std::int64_t> next_due() const noexcept { return next_due_; }
  // When the last token was due that due() has counted.
  std::int64_t last_due() const noexcept { return last_due_; }

 private:
  std::int64_t due_after_last(std::int64_t mean_gap, std::int64_t sampled) const {
    const std::int64_t latest = sampled + longest_delay_us;
    const std::int64_t delay = std::clamp(last_due_ + mean_gap, sampled, latest) - sampled;
    const std::int64_t gap = mean_gap + mean_gap * (usual_delay_us - delay) / (2 * usual_delay_us);
    return std::clamp(last_due_ + gap, sampled, latest);
  }

  const std::uint32_t first_;       // number of the first token that is paced
  std::uint32_t released_;          // tokens that were due so far
  std::int64_t first_sampled_ = 0;  // when the first token was sampled
  std::int64_t last_due_ = 0;       // of the last token that was due
  std::optional<std::int64_t> next_due_;
};

}  // namespace weir::net
