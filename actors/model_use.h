// model_use.h — how a model is used: which requests are on their way to it, how often it is asked for, and
// since when it rests.
//
// A request that found its model is on its way until it is admitted or refused. The model registry closes the
// way before it takes a model down for another: later requests wait in the registry's line, and those on
// their way arrive.
//
// Thread safety: any thread; a lock, taken a few times a request and never for a token.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/clock.h"

namespace weir::actors {

class model_use : public std::enable_shared_from_this<model_use> {
 public:
  // A request on its way; it has arrived when the last copy is gone. Null: none.
  using way = std::shared_ptr<const void>;

  // `stay`: for how long after this request its client wants the model to stay; 0: no wish. Null: the way is
  // closed, and the request has to wait.
  way enter(core::time_point now, core::duration stay = {}) {
    {
      const std::lock_guard hold(lock_);
      if (closed_) return nullptr;
      ++coming_;
    }
    const auto self = shared_from_this();
    way on_its_way(this, [self](const void*) { self->arrived(); });
    note(now, stay);
    return on_its_way;
  }

  // It had a job until now, which is no request of its own.
  void touch(core::time_point now) {
    const std::lock_guard hold(lock_);
    last_ = std::max(last_, now);
  }

  void close() {
    const std::lock_guard hold(lock_);
    closed_ = true;
  }
  void open() {
    const std::lock_guard hold(lock_);
    closed_ = false;
  }
  bool closed() const {
    const std::lock_guard hold(lock_);
    return closed_;
  }
  // Requests on their way. Once it is 0 after a close(), it stays 0 until open().
  std::uint32_t coming() const {
    const std::lock_guard hold(lock_);
    return coming_;
  }

  // When the latest request came; time_point{}: none did.
  core::time_point last_asked() const {
    const std::lock_guard hold(lock_);
    return last_;
  }
  // For how long the model is to stay after its last job, as requests wish. A wish lengthens another one, and
  // never shortens it; it is over once the model has rested for so long.
  core::duration stay() const {
    const std::lock_guard hold(lock_);
    return stay_;
  }
  // Requests of the last 10 minutes, to a minute.
  std::uint64_t asked_lately(core::time_point now) const {
    const std::lock_guard hold(lock_);
    const auto minute = minute_of(now);
    std::uint64_t sum = 0;
    for (const auto& m : minutes_)
      if (m.minute > minute - minutes) sum += m.requests;
    return sum;
  }

 private:
  static constexpr std::int64_t minutes = 10;
  struct count {
    std::int64_t minute = -minutes;
    std::uint64_t requests = 0;
  };
  static std::int64_t minute_of(core::time_point t) {
    return std::chrono::floor<std::chrono::minutes>(t.time_since_epoch()).count();
  }

  void note(core::time_point now, core::duration stay) {
    const std::lock_guard hold(lock_);
    const auto minute = minute_of(now);
    auto& slot = minutes_[static_cast<std::size_t>(minute % minutes)];
    if (slot.minute != minute) slot = {minute, 0};
    ++slot.requests;
    stay_ = now > last_ + stay_ ? stay : std::max(stay_, stay);
    last_ = now;
  }
  void arrived() {
    const std::lock_guard hold(lock_);
    --coming_;
  }

  mutable std::mutex lock_;  // of what follows
  bool closed_ = false;
  std::uint32_t coming_ = 0;
  core::time_point last_{};
  core::duration stay_{};
  std::array<count, minutes> minutes_;
};

}  // namespace weir::actors
