// reserve.h — a few places for connections that come in when the process has no memory for clients or no
// descriptor left, so that its health can be asked for at any time.
//
// Each place keeps a descriptor, which is closed while the place is taken: the connection gets it.
//
// Thread safety: any thread. The lock is held while a descriptor is opened or closed.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "net/descriptor.h"

namespace weir::net {

class reserve : public std::enable_shared_from_this<reserve> {
 public:
  static constexpr std::size_t places = 4;

  reserve() {
    for (auto& d : kept_) d = descriptor::spare();
  }

  // A place, until it is destroyed. An empty one stands for none.
  class place {
   public:
    place() = default;
    place(place&& other) noexcept = default;
    place& operator=(place&& other) noexcept {
      std::swap(of_, other.of_);
      return *this;
    }
    ~place() {
      if (of_) of_->leave();
    }
    explicit operator bool() const noexcept { return of_ != nullptr; }

   private:
    friend class reserve;
    std::shared_ptr<reserve> of_;
  };

  // Takes a place and closes its descriptor. An empty place: all are taken.
  place enter() {
    place p;
    const std::lock_guard lock(mutex_);
    if (taken_ == places) return p;
    kept_[taken_++].close();
    p.of_ = shared_from_this();
    return p;
  }

  // Opens the descriptors of free places that could not be opened when they became free.
  void refill() {
    const std::lock_guard lock(mutex_);
    open_free();
  }

 private:
  void leave() {
    const std::lock_guard lock(mutex_);
    --taken_;
    open_free();
  }
  void open_free() {
    for (std::size_t i = taken_; i < places; ++i)
      if (kept_[i].empty()) kept_[i] = descriptor::spare();
  }

  std::mutex mutex_;
  std::size_t taken_ = 0;
  std::array<descriptor, places> kept_;  // those from taken_ on are open, unless none was to be had
};

}  // namespace weir::net
