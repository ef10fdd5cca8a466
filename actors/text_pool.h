// text_pool.h — the CPU threads that tokenise, so that no I/O thread ever waits for a long prompt; in a
// simulation, the executor that stands for them.
//
// Its queue is bounded in tasks and in bytes, those in progress counted. A task that finds no room is
// refused, and so is one that throws: the process goes on, and whoever waits for the task is told.
//
// A byte's time is a running mean over the last tasks, as long as the clock says that they took. Tasks of
// less than 4 KiB do not count in it, since most of their time has nothing to do with their length.
//
// Thread safety: everything from any thread. The destructor finishes the task in progress, drops the rest and
// joins. Of tasks that are posted at the same moment one may be refused that would just have had room.
#pragma once

#include <concurrentqueue/blockingconcurrentqueue.h>

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/incidents.h"

namespace weir::actors {

struct text_options {
  unsigned threads = 1;
  std::uint32_t queue = 1024;                      // tasks
  std::uint64_t queue_bytes = std::uint64_t{64} << 20;  // of text; a task alone is taken however long it is
};

class text_pool {
 public:
  struct task {
    std::uint64_t bytes = 0;                  // how much text it is about
    std::function<void()> run;
    std::function<void(core::error)> refuse;  // in place of run, from inside post(); or after run has thrown
  };

  // `time` must outlive the pool; `seen` learns of tasks that threw. With an executor there are no threads:
  // tasks are posted there, and whoever runs it outlives them.
  text_pool(text_options o, const core::clock& time, std::shared_ptr<core::incidents> seen,
            boost::asio::any_io_executor instead = {});
  ~text_pool();

  // Tasks of one thread start in the order in which it posted them. The error that a task is refused with is
  // overloaded (no room, no memory) or internal (whatever else it threw).
  void post(task t);

  // Whoever reads that a task is over sees what it did.
  std::uint32_t tasks() const noexcept { return tasks_.load(std::memory_order_acquire); }
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  // Until a task that came now would begin; zero where nothing was measured yet.
  core::duration predicted_wait() const noexcept;

 private:
  void run();
  void work(task& t) noexcept;
  void fault(task& t, core::error e) noexcept;
  bool enter(std::uint64_t bytes) noexcept;
  void leave(std::uint64_t bytes) noexcept;
  core::error no_room(std::uint64_t bytes) const;
  void note_pace(std::uint64_t bytes, core::duration took) noexcept;
  double seconds_for(std::uint64_t bytes) const noexcept;

  const text_options options_;
  const core::clock& time_;
  const std::shared_ptr<core::incidents> seen_;
  std::atomic<std::uint32_t> tasks_{0};
  std::atomic<std::uint64_t> bytes_{0};
  // of one thread; a lost update of two threads is one task less in the mean
  std::atomic<double> seconds_per_byte_{0};
  moodycamel::BlockingConcurrentQueue<task> work_;  // a task without run ends one thread
  boost::asio::any_io_executor instead_;
  std::vector<std::jthread> threads_;
};

}  // namespace weir::actors
