// newest_first.h — an executor over an io_context that runs what became ready last before anything else, as
// CAF's workers do: depth first, and everything that a handler sets off before the next from outside.
//
// This saves memory and keeps caches warm, at the cost of fairness: io_context itself serves in order. The
// runtime does not know this executor: actors live on any executor.
//
// Thread safety: any thread may execute; one thread runs the io_context.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace bench {

class newest_first {
 public:
  explicit newest_first(boost::asio::io_context& io) : io_(io) {}
  newest_first(const newest_first&) = delete;
  newest_first& operator=(const newest_first&) = delete;

  class executor_type {
   public:
    explicit executor_type(newest_first& to) noexcept : to_(&to) {}
    boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
      return to_->io_;
    }
    static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
      return boost::asio::execution::blocking.never;
    }
    template <class F>
    void execute(F f) const {
      to_->add(std::make_unique<job_of<F>>(std::move(f)));
    }
    friend bool operator==(executor_type a, executor_type b) noexcept { return a.to_ == b.to_; }
    friend bool operator!=(executor_type a, executor_type b) noexcept { return a.to_ != b.to_; }

   private:
    newest_first* to_;
  };
  executor_type get_executor() noexcept { return executor_type(*this); }

 private:
  struct job {
    virtual void run() = 0;
    virtual ~job() = default;
  };
  template <class F>
  struct job_of final : job {
    explicit job_of(F&& f) : f_(std::move(f)) {}
    void run() override { f_(); }
    F f_;
  };

  void add(std::unique_ptr<job> j) {
    const bool inside = io_.get_executor().running_in_this_thread();
    if (inside) {
      ready_.push_back(std::move(j));
      if (std::exchange(running_, true)) return;
    }
    boost::asio::post(io_, [this, j = std::move(j)] {
      running_ = true;
      if (j) j->run();
      run();
    });
  }

  void run() {
    while (!ready_.empty()) {
      const auto newest = std::move(ready_.back());
      ready_.pop_back();
      newest->run();
    }
    running_ = false;
  }

  boost::asio::io_context& io_;
  // The io_context's thread alone:
  std::vector<std::unique_ptr<job>> ready_;
  bool running_ = false;  // run() runs or is about to run
};

}  // namespace bench
