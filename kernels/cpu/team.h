// team.h — the threads that compute: the caller and its workers, which share the items of one job at a time.
// A job here is one call of run().
//
// Thread safety: run(), begin_step() and end_step() from one thread at a time.
//
// Between begin_step() and end_step() jobs follow each other closely: workers spin until the next one, and
// park only when none has come for a while. Outside a step they park at once, so that an idle team uses no
// CPU and the cores are free for the threads that serve sockets. Jobs may be run outside steps, too.
//
// Invariants:
//   1. run() returns when every item has been done, each exactly once; what items wrote is visible to the
//      caller.
//   2. Which thread does which item is chance, and results must not depend on it. `worker` only selects
//      scratch memory.
//   3. A worker reads a job only while it holds an unfinished item of it, so that the job may be destroyed
//      when run() has returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace weir::kernels {

class team {
 public:
  explicit team(unsigned threads);  // including the caller; 0 counts as 1
  ~team();
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  // The number of threads, including the caller.
  unsigned size() const noexcept { return static_cast<unsigned>(workers_.size()) + 1; }

  // Wakes the workers, so that they are awake for the first job of the step.
  void begin_step() noexcept;

  // Lets the workers park.
  void end_step() noexcept;

  // Calls work(item, worker) for every item in [0, items), on all threads; worker < size(). `work` must not
  // throw.
  template <class F>
  void run(std::uint32_t items, const F& work) {
    constexpr auto call = [](const void* f, std::uint32_t item, unsigned worker) {
      (*static_cast<const F*>(f))(item, worker);
    };
    run_items(items, call, &work);
  }

  // The same on the calling thread alone, for work that costs less than sharing it.
  template <class F>
  void run_here(std::uint32_t items, const F& work) {
    for (std::uint32_t item = 0; item < items; ++item) work(item, 0u);
  }

 private:
  using item_function = void (*)(const void* context, std::uint32_t item, unsigned worker);

  void run_items(std::uint32_t items, item_function f, const void* context);
  bool do_one(unsigned worker);
  void serve(unsigned worker);

  // The job, on one cache line. The threads that take items write this line.
  alignas(64) std::atomic<std::uint32_t> left_{0};  // items not taken yet, and flags (team.cpp)
  std::uint32_t base_ = 0;            // the value of left_ between jobs; only the caller uses it
  item_function function_ = nullptr;  // written by the caller while no item is left or unfinished
  const void* context_ = nullptr;
  // On a cache line of its own, on which the caller spins.
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};  // items that are not finished
  std::vector<std::thread> workers_;
};

}  // namespace weir::kernels
