// token_pacer.h — pace "even": when each token of a response may be sent.
//
// A token is due one mean gap after the token before it, but neither before it was sampled nor more than
// 250 ms after. The mean gap is that of all tokens sampled so far. The first token is due at once. So tokens
// that were sampled in a burst leave evenly, and a delay that a burst or a stall has left behind serves as
// the buffer for the next one.
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
  static constexpr std::int64_t longest_delay_us = 250'000;

  // `from`: tokens that are sent already.
  explicit token_pacer(std::uint32_t from) : first_(from), released_(from) {}

  // The number of tokens of the job that may have been sent by `now`. `log` has the tokens after the first
  // `base` of them. The times of the log and `now` count from the same moment. REQUIRES: `base` is at most
  // what the last call returned.
  std::uint32_t due(const actors::token_log& log, std::uint32_t base, std::int64_t now) {
    next_due_.reset();
    const std::uint32_t published = base + log.whole();
    if (released_ == published) return released_;
    if (!first_sampled_) first_sampled_ = last_due_ = log.at_us(released_ - base);
    const std::uint32_t gaps = published - 1 - first_;
    const std::int64_t mean_gap = gaps > 0 ? (log.at_us(log.whole() - 1) - *first_sampled_) / gaps : 0;
    for (; released_ < published; ++released_) {
      const std::int64_t sampled = log.at_us(released_ - base);
      const std::int64_t wanted = released_ == first_ ? sampled : std::max(last_due_ + mean_gap, sampled);
      const std::int64_t at = std::min(wanted, sampled + longest_delay_us);
      if (at > now) {
        next_due_ = at;
        break;
      }
      last_due_ = at;
    }
    return released_;
  }
  // When the next token is due; nullopt: the last call of due() found no token that has to wait.
  std::optional<std::int64_t> next_due() const noexcept { return next_due_; }

 private:
  const std::uint32_t first_;                  // number of the first token that is paced
  std::uint32_t released_;                     // tokens that were due so far
  std::optional<std::int64_t> first_sampled_;  // when the first token was sampled
  std::int64_t last_due_ = 0;                  // of the last token that was due
  std::optional<std::int64_t> next_due_;
};

}  // namespace weir::net
