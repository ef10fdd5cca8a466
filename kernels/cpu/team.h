// team.h — the threads that compute: the caller and its workers, who share the items of one job at a time.
//
// Thread safety: run(), begin_step() and end_step() from one thread at a time.
//
// Between begin_step() and end_step() jobs follow each other closely: workers watch for the next one, and
// park only when none has come for a while. Outside a step they park at once, so that an idle team takes no
// CPU from anybody, and the threads that serve sockets find the cores free between steps. Jobs may be run
// outside steps too.
//
// Invariants:
//   1. run() returns when every item has been done, each exactly once; what items wrote is visible to the
//   caller.
//   2. Who does which item is chance; results must not depend on it. `worker` names scratch memory, nothing
//   else.
//   3. A worker reads a job only while it holds an unfinished item of it, so that the caller may forget it
//   after run().
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace weir::kernels {

class team {
 public:
  explicit team(unsigned threads);  // the caller included; 0 counts as 1
  ~team();
  team(const team&) = delete;
  team& operator=(const team&) = delete;

  unsigned size() const noexcept { return static_cast<unsigned>(workers_.size()) + 1; }

  // Wakes the workers, so that they are there for the first job of many; and lets them sleep.
  void begin_step() noexcept;
  void end_step() noexcept;

  // work(item, worker) for every item in [0, items); worker < size(). It must not throw.
  template <class F>
  void run(std::uint32_t items, const F& work) {
    constexpr auto call = [](const void* f, std::uint32_t item, unsigned worker) {
      (*static_cast<const F*>(f))(item, worker);
    };
    run_items(items, call, &work);
  }

  // The same on the caller alone: for what costs less than sharing it.
  template <class F>
  void run_here(std::uint32_t items, const F& work) {
    for (std::uint32_t item = 0; item < items; ++item) work(item, 0u);
  }

 private:
  using item_function = void (*)(const void* context, std::uint32_t item, unsigned worker);

  void run_items(std::uint32_t items, item_function f, const void* context);
  bool do_one(unsigned worker);
  void serve(unsigned worker);

  // The job, on a line of the cache that the caller hands over and the takers pass round.
  alignas(64) std::atomic<std::uint32_t> left_{0};  // items that nobody has taken, and the flags of team.cpp
  std::uint32_t base_ = 0;                          // left_ between jobs; the caller's own
  item_function function_ = nullptr;  // written by the caller while no item is left or unfinished
  const void* context_ = nullptr;
  // On another line, which the caller watches.
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};  // items that nobody has finished
  std::vector<std::thread> workers_;
};

}  // namespace weir::kernels
