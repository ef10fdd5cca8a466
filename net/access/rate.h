// rate.h — a token bucket: decides whether a client sends too fast, and whether that is abuse.
//
// Used on one thread. Time is passed in.
#pragma once

#include <algorithm>
#include <chrono>

namespace weir::net {

class rate_meter {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class verdict { fine, too_fast, abuse };

  // Allows `burst` messages at once, and then `per_s` messages a second. Up to `abuse` messages more are too
  // fast, and every message after these is abuse.
  rate_meter(double per_s, double burst, double abuse, time_point now)
      : per_s_(per_s), burst_(burst), abuse_(abuse), left_(burst), last_(now) {}

  verdict spend(time_point now) {
    left_ = std::min(burst_, left_ + std::chrono::duration<double>(now - last_).count() * per_s_);
    last_ = now;
    left_ = std::max(left_ - 1, -abuse_ - 1);
    if (left_ >= 0) return verdict::fine;
    return left_ >= -abuse_ ? verdict::too_fast : verdict::abuse;
  }

  // Time until another message is fine.
  std::chrono::milliseconds wait() const {
    return std::chrono::milliseconds(static_cast<long>(std::max(0.0, 1 - left_) / per_s_ * 1000) + 1);
  }

 private:
  double per_s_, burst_, abuse_, left_;
  time_point last_;
};

}  // namespace weir::net
