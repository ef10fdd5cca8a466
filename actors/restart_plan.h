// restart_plan.h — when a device that failed is made again.
//
// A failure is followed by an attempt at once, unless the last failure was less than a minute ago: then the
// device stays down. An attempt that does not succeed, as where memory is short for a while, is followed by
// others after pauses that double, up to a minute, for as long as it takes.
//
// Thread safety: the owner's thread only. Time is passed in.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/clock.h"

namespace weir::actors {

class restart_plan {
 public:
  static constexpr core::duration second_chance_after = std::chrono::minutes(1);
  static constexpr core::duration first_pause = std::chrono::seconds(1),
                                  longest_pause = std::chrono::minutes(1);

  // The device has failed. False: it stays down.
  bool failed(core::time_point now) {
    const bool again = !failed_at_ || now - *failed_at_ >= second_chance_after;
    failed_at_ = now;
    pause_ = first_pause;
    next_.reset();
    return again;
  }

  // An attempt begins. Unless succeeded() follows, even where the attempt throws, another is due().
  void attempt(core::time_point now) {
    next_ = now + pause_;
    first_ = pause_ == first_pause;
    pause_ = std::min(2 * pause_, longest_pause);
  }
  void succeeded() { next_.reset(); }

  std::optional<core::time_point> next() const { return next_; }  // of the next attempt; nullopt: none
  bool due(core::time_point now) const { return next_ && now >= *next_; }
  bool first() const { return first_; }  // the last attempt was the first since the failure

 private:
  std::optional<core::time_point> failed_at_, next_;
  core::duration pause_ = first_pause;
  bool first_ = true;
};

}  // namespace weir::actors
