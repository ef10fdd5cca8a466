// contexts.h — io_contexts, each run by a thread of its own: what actors are spread over.
//
// Thread safety: any thread may ask for an executor; construct and finish from outside.
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
  }
  ~contexts() { finish(); }

  std::size_t size() const { return all_.size(); }

  // Neighbours on different threads.
  executor_type round_robin(std::size_t i) { return all_[i % all_.size()]->io.get_executor(); }
  // The i-th of n: neighbours on one thread, mostly.
  executor_type by_block(std::size_t i, std::size_t n) { return round_robin(i * all_.size() / n); }

  // Returns once nothing is left to do anywhere: the last actor has ended.
  void finish() {
    for (auto& c : all_) c->work.reset();
    for (auto& c : all_) {
      if (c->thread.joinable()) c->thread.join();
    }
  }

 private:
  struct one {
    boost::asio::io_context io{1};
    boost::asio::executor_work_guard<executor_type> work{io.get_executor()};
    std::thread thread{[this] { io.run(); }};
  };
  std::vector<std::unique_ptr<one>> all_;
};

}  // namespace bench
