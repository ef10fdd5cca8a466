// virtual_clock.h — a clock that moves when told to, for timers on an io_context that the test polls.
//
//   boost::asio::basic_waitable_timer<virtual_clock> t(io, std::chrono::hours(1));
//   io.poll();  virtual_clock::advance(io, std::chrono::hours(1));
//
// Thread safety: none; one test at a time.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>
#include <chrono>

namespace weir::tests {

struct virtual_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<virtual_clock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept { return now_; }

  // Moves on and runs what is due then.
  static void advance(boost::asio::io_context& io, duration d) {
    now_ += d;
    io.restart();
    io.poll();
  }

 private:
  static inline time_point now_{};
};

}  // namespace weir::tests

// Asio never sleeps until a virtual time: it looks again at each poll.
template <>
struct boost::asio::wait_traits<weir::tests::virtual_clock> {
  using clock = weir::tests::virtual_clock;
  static clock::duration to_wait_duration(const clock::duration&) { return {}; }
  static clock::duration to_wait_duration(const clock::time_point&) { return {}; }
};
