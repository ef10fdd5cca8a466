// timed_loop.h — an I/O thread that counts the CPU time of each handler that it runs.
//
// A handler is what io_context::run_one() runs: the completion of an operation, from its system call to the
// next time that the thread waits or takes another one. The clock is the thread's CPU time, so that neither
// waiting nor other threads count.
//
// Thread safety: take() from any thread.
#pragma once

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace weir::bench {

// CPU times of handlers, in ns.
class handler_times {
 public:
  explicit handler_times(std::vector<std::uint32_t> ns) : ns_(std::move(ns)) { std::ranges::sort(ns_); }
  std::size_t count() const { return ns_.size(); }
  std::size_t over_ms(double ms) const {
    return static_cast<std::size_t>(ns_.end() - std::ranges::upper_bound(ns_, ms * 1e6));
  }
  double quantile_ms(double q) const {
    if (ns_.empty()) return 0;
    return ns_[static_cast<std::size_t>(q * static_cast<double>(ns_.size() - 1))] * 1e-6;
  }
  const std::vector<std::uint32_t>& all() const { return ns_; }

 private:
  std::vector<std::uint32_t> ns_;
};

class timed_loop {
 public:
  timed_loop() : thread_([this] { run(); }) {}
  ~timed_loop() {
    io_.stop();
    thread_.join();
  }
  boost::asio::io_context::executor_type executor() { return io_.get_executor(); }

  // The handlers since the last call.
  handler_times take() {
    const std::lock_guard held(mutex_);
    return handler_times(std::exchange(ns_, {}));
  }

 private:
  static std::int64_t cpu_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1'000'000'000) + t.tv_nsec;
  }
  void run() {
    for (auto before = cpu_ns(); io_.run_one() > 0; before = cpu_ns()) {
      const auto took = cpu_ns() - before;
      const std::lock_guard held(mutex_);
      ns_.push_back(static_cast<std::uint32_t>(std::min<std::int64_t>(took, UINT32_MAX)));
    }
  }

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::mutex mutex_;
  std::vector<std::uint32_t> ns_;
  std::thread thread_;
};

}  // namespace weir::bench
