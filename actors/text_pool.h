// text_pool.h — CPU threads that tokenise, so that no I/O thread waits for a long prompt. In a simulation an
// executor takes their place.
//
// API keys take turns (key_turns.h), and one key never has more than one thread: a key waits for others only
// while they have all threads, and then for one task of each at most.
//
// The queue is bounded in tasks and in bytes, and tasks in progress count. One key has at most half of the
// room. A task that finds no room is refused, and so is one whose run() throws.
//
// The time per byte is a running mean, in which a task weighs by its length. Tasks under 4 KiB do not count,
// since most of their time does not depend on their length.
//
// What takes long to destroy, as a long request does, is left to the pool's threads: drop().
//
// Thread safety: every member from any thread. The destructor waits for the tasks in progress, and drops all
// others without a call of either function.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "actors/key_turns.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/incidents.h"

namespace weir::actors {

// How many texts may wait to be tokenised. A text that waits alone may have more bytes than the limit.
struct text_bounds {
  std::uint32_t queue = 1024;
  std::uint64_t queue_bytes = 64 << 20;
};

class text_pool {
 public:
  struct task {
    std::uint64_t key = 0;    // whose turn the task takes (principal::key); 0: of all without a key
    std::uint64_t bytes = 0;  // of its text
    std::function<void()> run;
    // Called from inside post() instead of run(), or on the pool's thread after run() threw.
    std::function<void(core::error)> refuse;
  };

  // `time` must outlive the pool. `seen` records what tasks threw. With `instead` there is no thread: tasks
  // run on that executor, which must not run them after the pool was destroyed.
  text_pool(const text_bounds& limits, const core::clock& time, std::shared_ptr<core::incidents> seen,
            std::uint32_t threads, boost::asio::any_io_executor instead = {});
  ~text_pool();

  // Queues a task. Tasks that one thread posts for a key start in their order. A refused task gets the error
  // overloaded (no room, or run() threw bad_alloc) or internal (run() threw anything else).
  void post(task t);
  // Gives up one owner's share of `what` on a thread of the pool. Where there is no memory, or no thread,
  // that happens here.
  void drop(std::shared_ptr<const void> what) noexcept;

  // Tasks queued or in progress. A thread that sees a task gone from this count also sees its effects.
  std::uint32_t tasks() const noexcept { return tasks_.load(std::memory_order_acquire); }
  // Bytes of those tasks.
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  // Predicted time until a task that is posted now would start; zero while nothing was measured.
  core::duration predicted_wait() const noexcept;

 private:
  // What is in the pool, of all keys or of one.
  struct share {
    std::uint32_t tasks = 0;
    std::uint64_t bytes = 0;
  };

  void run();
  void run_one();
  void destroy_dropped(std::unique_lock<std::mutex>& held) noexcept;
  void work(task& t) noexcept;
  void fault(task& t, core::error e) noexcept;
  std::optional<core::error> enter(const task& t);  // why there is no room
  std::optional<core::error> no_room(std::uint64_t bytes, const share& held, std::uint32_t most,
                                     std::uint64_t most_bytes) const;
  void leave(std::uint64_t key, std::uint64_t bytes) noexcept;
  void note_pace(std::uint64_t bytes, core::duration took) noexcept;
  double seconds_for(std::uint64_t bytes) const noexcept;

  const text_bounds limits_;
  const core::clock& time_;
  const std::shared_ptr<core::incidents> seen_;
  std::atomic<std::uint32_t> tasks_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<double> seconds_per_byte_{0};
  std::mutex mutex_;  // of what follows; held for a few steps at a time
  std::condition_variable changed_;
  key_turns<task> turns_;
  std::vector<std::shared_ptr<const void>> dropped_;
  std::unordered_map<std::uint64_t, share> shares_;
  bool ending_ = false;
  boost::asio::any_io_executor instead_;
  std::vector<std::jthread> threads_;
};

}  // namespace weir::actors
