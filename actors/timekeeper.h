// timekeeper.h — the clock of a service, and bells that ring at a time of it. The one seam through which time
// comes in: a simulation keeps its own.
//
// Thread safety: now() and make_bell() from any thread; a bell is used, rings and is destroyed on its
// executor alone.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>

#include "core/clock.h"

namespace weir::actors {

class timekeeper : public core::clock {
 public:
  // Rings once at the time it was last set to, on its executor; never after it was destroyed.
  class bell {
   public:
    virtual ~bell() = default;
    virtual void set(core::time_point at) = 0;
  };
  virtual std::unique_ptr<bell> make_bell(boost::asio::any_io_executor where,
                                          std::function<void()> ring) const = 0;

  // Tells the same time, also after this one is gone: streams may outlive their service.
  virtual std::shared_ptr<const core::clock> lasting() const = 0;
};

// The machine's own steady clock.
class system_time final : public timekeeper {
 public:
  core::time_point now() const noexcept override { return core::system_clock().now(); }
  std::unique_ptr<bell> make_bell(boost::asio::any_io_executor where,
                                  std::function<void()> ring) const override;
  std::shared_ptr<const core::clock> lasting() const override {
    return std::make_shared<core::system_clock>();
  }
};

}  // namespace weir::actors
