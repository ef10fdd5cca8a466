#include "net/hub.h"

namespace weir::net {

void hall::enter() {
  std::lock_guard lock(mutex_);
  ++inside_;
}

void hall::leave() {
  std::lock_guard lock(mutex_);
  if (--inside_ == 0) emptied_.notify_all();
}

std::int64_t hall::inside() const {
  std::lock_guard lock(mutex_);
  return inside_;
}

bool hall::wait_empty(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return emptied_.wait_for(lock, most, [this] { return inside_ == 0; });
}

void hall::count_close(std::uint16_t code) {
  std::lock_guard lock(mutex_);
  ++closed_[code];
}

std::map<std::uint16_t, std::uint64_t> hall::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

void hub::tell(event e) {
  if (e == event::tick) look_after_orphans();
  for (auto& l : listeners_) core::contained(hall_->seen, "a connection's clock", [&] { l(e); });
  if (e == event::tick) publish_lag();
}

void hub::publish_lag() {
  hall_->lag.late += late_ - published_late_;
  hall_->lag.bytes += lag_bytes_ - published_lag_bytes_;
  published_late_ = std::exchange(late_, 0);
  published_lag_bytes_ = std::exchange(lag_bytes_, 0);
}

void hub::adopt(std::shared_ptr<actors::job_stream> job) {
  orphans_.push_back({std::move(job), hall_->service.now() + limits().detach_grace});
}

void hub::let_go_of_all() { orphans_.clear(); }

void hub::look_after_orphans() {
  const auto now = hall_->service.now();
  // A stream that is let go while its job runs cancels it.
  orphans_.remove_if([now](const orphan& o) {
    using phase = actors::job_stream::phase;
    const phase p = o.job->state();
    return p == phase::done || p == phase::refused || now >= o.until;
  });
}

}  // namespace weir::net
