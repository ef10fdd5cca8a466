#include "net/hub.h"

namespace weir::net {

void server_state::coroutine_begun() {
  std::lock_guard lock(mutex_);
  ++coroutines_;
}

void server_state::coroutine_ended() {
  std::lock_guard lock(mutex_);
  if (--coroutines_ == 0) all_ended_.notify_all();
}

std::int64_t server_state::coroutines() const {
  std::lock_guard lock(mutex_);
  return coroutines_;
}

bool server_state::wait_all_ended(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return all_ended_.wait_for(lock, most, [this] { return coroutines_ == 0; });
}

std::map<std::uint16_t, std::uint64_t> server_state::closed() const {
  std::map<std::uint16_t, std::uint64_t> all;
  for (const auto& s : shards_) s.closed.each([&](std::uint16_t code, std::uint64_t n) { all[code] += n; });
  return all;
}

std::map<std::string_view, std::uint64_t> server_state::rejected() const {
  std::map<std::string_view, std::uint64_t> all;
  for (const auto& s : shards_)
    s.rejected.each([&](std::string_view reason, std::uint64_t n) { all[reason] += n; });
  return all;
}

std::uint64_t server_state::resumed() const noexcept {
  std::uint64_t n = 0;
  for (const auto& s : shards_) n += s.resumed.value();
  return n;
}

void server_state::add_sampled_to_sent(core::delays& to) const noexcept {
  for (const auto& s : shards_) to.add(s.sampled_to_sent);
}

void hub::tell(event e) {
  if (e == event::tick) {
    jobs_->tick();
    core::contained(server_->seen, "the models that are followed", [&] { models_->tick(); });
  }
  for (auto& l : listeners_) core::contained(server_->seen, "a connection's clock", [&] { l(e); });
  if (e == event::tick) publish_lag();
}

void hub::publish_lag() {
  server_->lag.late += late_ - published_late_;
  server_->lag.bytes += lag_bytes_ - published_lag_bytes_;
  published_late_ = std::exchange(late_, 0);
  published_lag_bytes_ = std::exchange(lag_bytes_, 0);
}

}  // namespace weir::net
