// exclusive_thread.h — one OS thread with an io_context that no other thread runs, for the owner of a device.
//
// Thread safety: get_executor() and here() from any thread. The object must be constructed and destroyed on
// another thread than its own.
//
// Invariants:
//   1. Every handler runs on the thread, and handlers that are still pending at the end are destroyed on it.
//      Objects that are bound to the thread, such as a CUDA context, are therefore never used elsewhere.
//   2. The destructor ends the loop after the current handler, and joins the thread. Actors that are still
//      alive are abandoned. An actor that has something to finish must be stopped and joined before.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace weir {

class exclusive_thread {
 public:
  using executor_type = boost::asio::io_context::executor_type;

  struct options {
    std::string name = "weir";            // name of the thread; the system shows the first 15 bytes
    std::optional<int> cpu = {};          // the thread is pinned to this core; nullopt: to none
    std::function<void()> on_start = {};  // called on the thread before any handler
    // Called on the thread when a handler has thrown; the thread then goes on. Empty: the exception ends the
    // program.
    std::function<void(std::exception_ptr)> on_escape = {};
  };

  // Returns when on_start has returned. Throws what on_start threw, or system_error if the thread cannot be
  // pinned to the core.
  explicit exclusive_thread(options o) : io_(std::make_unique<boost::asio::io_context>(1)) {
    std::promise<void> started;
    auto ready = started.get_future();
    thread_ =
        std::thread([this, o = std::move(o), started = std::move(started)]() mutable { run(o, started); });
    try {
      ready.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  explicit exclusive_thread(const char* name) : exclusive_thread(options{.name = name}) {}
  exclusive_thread(const exclusive_thread&) = delete;
  exclusive_thread& operator=(const exclusive_thread&) = delete;

  ~exclusive_thread() {
    io_->stop();
    leave_.release();
    thread_.join();
  }

  executor_type get_executor() noexcept { return io_->get_executor(); }
  // Whether the caller runs on the thread.
  bool here() const noexcept { return std::this_thread::get_id() == id_; }

 private:
  void run(options& o, std::promise<void>& started) {
    id_ = std::this_thread::get_id();
    try {
      pthread_setname_np(pthread_self(), o.name.substr(0, 15).c_str());
      if (o.cpu) pin(*o.cpu);
      if (o.on_start) o.on_start();
    } catch (...) {
      io_.reset();
      return started.set_exception(std::current_exception());
    }
    auto work = boost::asio::make_work_guard(*io_);
    started.set_value();
    while (!run_handlers(o.on_escape)) {
    }
    leave_.acquire();  // the io_context must not be destroyed while the destructor is inside stop()
    work.reset();
    io_.reset();
  }

  // Returns false if a handler threw; other handlers may be left.
  bool run_handlers(const std::function<void(std::exception_ptr)>& on_escape) {
    if (!on_escape) return io_->run(), true;
    try {
      io_->run();
      return true;
    } catch (...) {
      on_escape(std::current_exception());
      return false;
    }
  }

  static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0 || cpu >= CPU_SETSIZE) throw std::system_error(EINVAL, std::generic_category(), "cpu");
    CPU_SET(cpu, &set);
    const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    if (error) throw std::system_error(error, std::generic_category(), "cpu " + std::to_string(cpu));
  }

  std::unique_ptr<boost::asio::io_context> io_;
  std::binary_semaphore leave_{0};
  std::thread::id id_;
  std::thread thread_;
};

}  // namespace weir
