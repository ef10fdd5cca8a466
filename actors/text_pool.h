// text_pool.h — the CPU threads that tokenise, so that no I/O thread ever waits for a long prompt; in a simulation, the
// executor that stands for them.
//
// Thread safety: post() from any thread. The destructor finishes the task in progress, drops the rest and joins.
#pragma once

#include <concurrentqueue/blockingconcurrentqueue.h>

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <thread>
#include <vector>

namespace weir::actors {

class text_pool {
 public:
  using task = std::function<void()>;

  // With an executor there are no threads: tasks are posted there, and whoever runs it outlives them.
  text_pool(unsigned threads, boost::asio::any_io_executor instead = {});
  ~text_pool();

  // Tasks of one thread start in the order in which it posted them.
  void post(task t);

 private:
  void run();

  moodycamel::BlockingConcurrentQueue<task> work_;  // an empty task ends one thread
  boost::asio::any_io_executor instead_;
  std::vector<std::jthread> threads_;
};

}  // namespace weir::actors
