// seeded_executor.h — one thread, and every order in which its handlers could run is a function of the seed.
//
// for_each_seed runs a scenario under many seeds and names the one that failed, so that it can be replayed
// alone. Thread safety: none; everything on the thread that calls run().
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

class seeded_context : public boost::asio::execution_context {
 public:
  explicit seeded_context(std::uint64_t seed) : random_(seed) {}
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
    explicit executor_type(seeded_context& c) noexcept : context_(&c) {}
    boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept {
      return *context_;
    }
    static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
      return boost::asio::execution::blocking.never;
    }
    template <class F>
    void execute(F f) const {
      context_->ready_.push_back(std::make_unique<op_of<F>>(std::move(f)));
    }
    friend bool operator==(executor_type a, executor_type b) noexcept { return a.context_ == b.context_; }
    friend bool operator!=(executor_type a, executor_type b) noexcept { return a.context_ != b.context_; }

   private:
    seeded_context* context_;
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
    op->run();
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

  std::vector<std::unique_ptr<op>> ready_;
  std::mt19937_64 random_;
};

// scenario(seeded_context&) builds actors, runs the context and checks; any failure names its seed.
template <class Scenario>
void for_each_seed(std::uint64_t seeds, Scenario scenario) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed);
    seeded_context context(seed);
    scenario(context);
  }
}

}  // namespace weir::tests
