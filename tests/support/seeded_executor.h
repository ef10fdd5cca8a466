// seeded_executor.h — one thread that runs its handlers in an order which is a function of the seed.
//
// for_each_seed runs a scenario under many seeds and names the one that failed, so that it can be replayed
// alone. Under `dispatches::queued` even a dispatched handler is queued. Under `inside`, a handler that a
// handler dispatches runs inside the call, as on an io_context or a strand.
//
// Thread safety: none; everything on the thread that calls run().
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace weir::tests {

enum class dispatches { queued, inside };

class seeded_context : public boost::asio::execution_context {
 public:
  explicit seeded_context(std::uint64_t seed, dispatches d = dispatches::queued)
      : inside_(d == dispatches::inside), random_(seed) {}
  ~seeded_context() {
    shutdown();
    while (!ready_.empty()) {  // destroying one may post another
      auto op = std::move(ready_.back());
      ready_.pop_back();
    }
    destroy();
  }

  class executor_type {
   public:
    using blocking_t = boost::asio::execution::blocking_t;
    explicit executor_type(seeded_context& c) noexcept : context_(&c), never_(!c.inside_) {}
    boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
      return *context_;
    }
    blocking_t query(blocking_t) const noexcept {
      return never_ ? blocking_t(blocking_t::never) : blocking_t(blocking_t::possibly);
    }
    executor_type require(blocking_t::never_t) const noexcept {
      executor_type other(*this);
      other.never_ = true;
      return other;
    }
    template <class F>
    void execute(F f) const {
      if (!never_ && context_->running_) return f();
      context_->ready_.push_back(std::make_unique<op_of<F>>(std::move(f)));
    }
    friend bool operator==(executor_type, executor_type) noexcept = default;

   private:
    seeded_context* context_;
    bool never_;
  };
  executor_type get_executor() noexcept { return executor_type(*this); }

  // Runs handlers in an order of the seed's choice until none is left; returns how many ran.
  std::size_t run() {
    std::size_t n = 0;
    while (run_one()) ++n;
    return n;
  }
  bool run_one() {
    if (ready_.empty()) return false;
    std::swap(ready_[random_() % ready_.size()], ready_.back());
    auto op = std::move(ready_.back());
    ready_.pop_back();
    running_ = true;
    op->run();
    running_ = false;
    return true;
  }

 private:
  struct op {
    virtual void run() = 0;
    virtual ~op() = default;
  };
  template <class F>
  struct op_of final : op {
    explicit op_of(F&& f) : f_(std::move(f)) {}
    void run() override { f_(); }
    F f_;
  };

  const bool inside_;
  bool running_ = false;
  std::vector<std::unique_ptr<op>> ready_;
  std::mt19937_64 random_;
};

// scenario(seeded_context&) builds actors, runs the context and checks; any failure names its seed.
template <class Scenario>
void for_each_seed(std::uint64_t seeds, dispatches d, Scenario scenario) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed << (d == dispatches::queued ? ", dispatches queued" : ", dispatches inside"));
    seeded_context context(seed, d);
    scenario(context);
  }
}
template <class Scenario>
void for_each_seed(std::uint64_t seeds, Scenario scenario) {
  for_each_seed(seeds, dispatches::queued, scenario);
  for_each_seed(seeds, dispatches::inside, scenario);
}

}  // namespace weir::tests
