// text_pool.h — CPU threads that tokenise and compile, so that no I/O thread waits for a long text. In a
// simulation an executor takes their place.
//
// API keys take turns (key_turns.h), and one key never has more than one task in progress. A pool has a few
// places, in which tasks run, and some more threads than places. A task that has run for `slice` gives its
// place to the key whose turn it is, keeps its thread, and goes on in its own turn (core/turn.h). So a key
// waits for at most one slice of each other key. Only where all threads have half-done tasks must a task that
// has not begun wait for the end of one of them.
//
// The queue is bounded in tasks and in bytes, and tasks in progress count. One key has at most half of the
// room. A task that finds no room is refused, and so is one whose run() throws.
//
// The time per byte is a running mean of the tasks' own time, in which a task weighs by its length. Tasks
// under 4 KiB do not count, since most of their time does not depend on their length.
//
// What takes long to destroy, as a long request does, is left to the pool's threads: drop().
//
// Thread safety: every member from any thread. The destructor ends the tasks in progress, as if nobody wanted
// them any more, and drops all others without a call of either function.
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
#include "core/turn.h"

namespace weir::actors {

// How many texts may wait to be tokenised. A text that waits alone may have more bytes than the limit.
struct text_bounds {
  std::uint32_t queue = 1024;
  std::uint64_t queue_bytes = 64 << 20;
};

class text_pool {
 public:
  // How long a task runs while other keys wait.
  static constexpr core::duration slice = std::chrono::milliseconds(25);

  struct size {
    std::uint32_t places = 1;   // tasks that run at a time
    std::uint32_t threads = 1;  // the most that tasks may hold; those beyond `places` are started when needed
  };

  struct task {
    std::uint64_t key = 0;    // whose turn the task takes (principal::key); 0: of all without a key
    std::uint64_t bytes = 0;  // of its text
    // Asks the turn while it works (core/turn.h).
    std::function<void(core::turn&)> run;
    // Called from inside post() instead of run(), or on the pool's thread after run() threw.
    std::function<void(core::error)> refuse;
    // Whether nobody wants the result any more; it never becomes false again. Empty: somebody does.
    std::function<bool()> unwanted;
  };

  // `time` must outlive the pool. `seen` records what tasks threw. With `instead` there is no thread: tasks
  // run on that executor, one after the other and each as a whole. It must not run them after the pool was
  // destroyed.
  text_pool(const text_bounds& limits, const core::clock& time, std::shared_ptr<core::incidents> seen,
            size how_large, boost::asio::any_io_executor instead = {});
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
  class own_turn;
  struct work {
    task what;
    bool begun = false;
    own_turn* half_done = nullptr;  // of the task, while it waits for its turn to go on
  };
  using turns = key_turns<work>;

  // What is in the pool, of all keys or of one.
  struct share {
    std::uint32_t tasks = 0;
    std::uint64_t bytes = 0;
  };

  void run();
  void run_one();
  void run_task(const turns::turn& mine) noexcept;
  void destroy_dropped(std::unique_lock<std::mutex>& held) noexcept;
  void hand_out();    // under mutex_, as the next two
  bool has_thread();  // for a task that begins
  void add_thread() {
    threads_.emplace_back([this] { run(); });
  }
  void give_way(own_turn& half_done);
  void fault(task& t, core::error e) noexcept;
  std::optional<core::error> enter(const task& t);  // why there is no room
  std::optional<core::error> no_room(std::uint64_t bytes, const share& held, std::uint32_t most,
                                     std::uint64_t most_bytes) const;
  void leave(std::uint64_t key, std::uint64_t bytes) noexcept;
  void note_pace(std::uint64_t bytes, core::duration took) noexcept;
  double seconds_for(std::uint64_t bytes) const noexcept;

  const text_bounds limits_;
  const size size_;
  const core::clock& time_;
  const std::shared_ptr<core::incidents> seen_;
  std::atomic<std::uint32_t> tasks_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<double> seconds_per_byte_{0};
  std::atomic<bool> ending_{false};  // written under mutex_
  std::mutex mutex_;                 // of what follows; held for a few steps at a time
  std::condition_variable changed_;
  turns turns_;
  std::uint32_t running_ = 0, begun_ = 0;  // tasks in a place; tasks that have a thread
  std::vector<turns::turn> handed_;        // to threads that are free; as many as there are places at most
  std::vector<std::shared_ptr<const void>> dropped_;
  std::unordered_map<std::uint64_t, share> shares_;
  boost::asio::any_io_executor instead_;
  std::vector<std::jthread> threads_;  // grows under mutex_
};

}  // namespace weir::actors
