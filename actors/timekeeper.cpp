#include "actors/timekeeper.h"

#include <boost/asio/steady_timer.hpp>
#include <thread>

namespace weir::actors {
namespace {

class system_timer final : public timekeeper::timer {
 public:
  system_timer(boost::asio::any_io_executor where, std::function<void()> ring)
      : timer_(std::move(where)), ring_(std::make_shared<const std::function<void()>>(std::move(ring))) {}

  void set(core::time_point at) override {
    timer_.expires_at(at);
    // A timer that is set again or destroyed after it was due may still have its handler in the executor's
    // queue.
    timer_.async_wait([ring = std::weak_ptr(ring_)](boost::system::error_code ec) {
      const auto alive = ring.lock();
      if (!ec && alive) (*alive)();
    });
  }

 private:
  boost::asio::steady_timer timer_;
  std::shared_ptr<const std::function<void()>> ring_;
};

}  // namespace

std::unique_ptr<timekeeper::timer> system_time::make_timer(boost::asio::any_io_executor where,
                                                         std::function<void()> ring) const {
  return std::make_unique<system_timer>(std::move(where), std::move(ring));
}

void system_time::spend(core::duration d) const { std::this_thread::sleep_for(d); }

}  // namespace weir::actors
