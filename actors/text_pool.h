// text_pool.h — the CPU threads that tokenise, so that no I/O thread ever waits for a long prompt.
//
// Thread safety: post() from any thread. The destructor finishes the task in progress, drops the rest and joins.
#pragma once

#include <concurrentqueue/blockingconcurrentqueue.h>

#include <functional>
#include <thread>
#include <vector>

namespace weir::actors {

class text_pool {
 public:
  using task = std::function<void()>;

  explicit text_pool(unsigned threads);
  ~text_pool();

  // Tasks of one thread start in the order in which it posted them.
  void post(task t) { work_.enqueue(std::move(t)); }

 private:
  void run();

  moodycamel::BlockingConcurrentQueue<task> work_;  // an empty task ends one thread
  std::vector<std::jthread> threads_;
};

}  // namespace weir::actors
