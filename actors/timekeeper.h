// timekeeper.h — the clock of a service, and its timers. All time comes in through this
// interface, so that a simulation can supply its own.
//
// Thread safety: now(), make_timer(), spend() and lasting() from any thread. A timer is set, runs its
// callback and is destroyed on its executor only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>

#include "core/clock.h"

namespace weir::actors {

class timekeeper : public core::clock {
 public:
  // A timer. Calls its callback once, on its executor, at the time that it was last set to; never after it
  // was destroyed.
  class timer {
   public:
    virtual ~timer() = default;
    // Replaces a time that is set already.
    virtual void set(core::time_point at) = 0;
  };
  // A timer on executor `where` with callback `ring`; not set yet.
  virtual std::unique_ptr<timer> make_timer(boost::asio::any_io_executor where,
                                            std::function<void()> ring) const = 0;

  // Lets `d` pass on the calling thread, as work that takes so long does. A simulation moves its clock.
  virtual void spend(core::duration d) const = 0;

  // A clock with the same time that may outlive this object, for streams that outlive their service.
  virtual std::shared_ptr<const core::clock> lasting() const = 0;
};

// The machine's own steady clock.
class system_time final : public timekeeper {
 public:
  core::time_point now() const noexcept override { return core::system_clock().now(); }
  std::unique_ptr<timer> make_timer(boost::asio::any_io_executor where,
                                    std::function<void()> ring) const override;
  void spend(core::duration d) const override;
  std::shared_ptr<const core::clock> lasting() const override {
    return std::make_shared<core::system_clock>();
  }
};

}  // namespace weir::actors
