// rate.h — a token bucket: how fast a client may send, and when sending faster is abuse.
//
// Used on one thread; time is passed in.
#pragma once

#include <algorithm>
#include <chrono>

namespace weir::net {

class rate_meter {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class verdict { fine, too_fast, abuse };

  // `burst` messages at once, then `per_s`; `abuse` messages over that end it.
  rate_meter(double per_s, double burst, double abuse, time_point now)
      : per_s_(per_s), burst_(burst), abuse_(abuse), left_(burst), last_(now) {}

  verdict spend(time_point now) {
    left_ = std::min(burst_, left_ + std::chrono::duration<double>(now - last_).count() * per_s_);
    last_ = now;
    left_ = std::max(left_ - 1, -abuse_ - 1);
    if (left_ >= 0) return verdict::fine;
    return left_ >= -abuse_ ? verdict::too_fast : verdict::abuse;
  }

  // How long until a message would be fine again.
  std::chrono::milliseconds wait() const {
    return std::chrono::milliseconds(static_cast<long>(std::max(0.0, 1 - left_) / per_s_ * 1000) + 1);
  }

 private:
  double per_s_, burst_, abuse_, left_;
  time_point last_;
};

}  // namespace weir::net
