// wake.h — lets a session sleep until there is something to do. Used on one shard.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::net {

class wake {
 public:
  explicit wake(boost::asio::any_io_executor ex)
      : timer_(std::move(ex), boost::asio::steady_timer::time_point::max()) {}

  // Ends the wait. If nobody waits yet, the next wait() returns at once.
  void notify() {
    if (std::exchange(set_, true)) return;
    timer_.cancel();
  }

  // One waiter at a time.
  boost::asio::awaitable<void> wait() {
    while (!set_) {
      boost::system::error_code cancelled;
      co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
    }
    set_ = false;
  }

 private:
  boost::asio::steady_timer timer_;
  bool set_ = false;
};

}  // namespace weir::net
