// contexts.h — io_contexts, each run by one thread: what actors are spread over. The first is run by the
// caller, as in most Asio programs, the others by threads that are there from the start.
//
// Thread safety: any thread may ask for an executor or call release; the rest is the owner's.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace bench {

class contexts {
 public:
  using executor_type = boost::asio::io_context::executor_type;

  explicit contexts(unsigned n) {
    for (unsigned i = 0; i < n; ++i) all_.push_back(std::make_unique<one>());
    for (unsigned i = 1; i < n; ++i) all_[i]->thread = std::thread([c = all_[i].get()] { c->io.run(); });
  }
  ~contexts() { finish(); }

  std::size_t size() const { return all_.size(); }

  // The i-th executor, with neighbours on different threads.
  executor_type round_robin(std::size_t i) { return all_[i % all_.size()]->io.get_executor(); }
  // The i-th of n executors, with neighbours mostly on one thread.
  executor_type by_block(std::size_t i, std::size_t n) { return round_robin(i * all_.size() / n); }

  boost::asio::io_context& context(std::size_t i) { return all_[i]->io; }

  // Lets each context end once nothing is left to do on it. Nothing more may come from outside.
  void release() {
    for (auto& c : all_) c->work.reset();
  }

  // Returns once every context has ended.
  void run() {
    all_.front()->io.run();
    for (auto& c : all_) {
      if (c->thread.joinable()) c->thread.join();
    }
  }

  void finish() {
    release();
    run();
  }

 private:
  struct one {
    boost::asio::io_context io{1};
    boost::asio::executor_work_guard<executor_type> work{io.get_executor()};
    std::thread thread;
  };
  std::vector<std::unique_ptr<one>> all_;
};

}  // namespace bench
