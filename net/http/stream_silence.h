// stream_silence.h — says when a stream has sent nothing for so long that its reader, and the proxies
// between, have to be shown that it is alive.
//
// Thread safety: one thread. Time is passed in at ticks, so that sending does not read a clock. A silence is
// noticed at the first tick after its time, and begins at most one tick late.
#pragma once

#include <chrono>
#include <utility>

namespace weir::net {

class stream_silence {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  // `most`: longest silence; 0: any.
  explicit stream_silence(std::chrono::milliseconds most) : most_(most) {}

  // Something was sent.
  void sent() noexcept {
    sent_ = true;
    over_ = false;
  }
  // Time has passed. True: the silence is over now, and take() will say so.
  bool tick(time_point now) noexcept {
    if (std::exchange(sent_, false)) since_ = now;
    if (most_.count() == 0 || now - since_ < most_) return false;
    since_ = now;
    return over_ = true;
  }
  // Whether something has to be sent. The answer is given once.
  bool take() noexcept { return std::exchange(over_, false); }

 private:
  const std::chrono::milliseconds most_;
  time_point since_{};  // time of the first tick after the last send
  bool sent_ = true, over_ = false;
};

}  // namespace weir::net
