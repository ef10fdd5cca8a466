// memory_returner.h — gives memory that the allocator keeps free back to the system.
//
// glibc keeps what is freed for later allocations. After a storm of connections that is free memory all over
// its arenas, which it would keep for as long as the process runs.
//
// Thread safety: one thread. While tick() gives memory back, allocations of other threads may wait.
#pragma once

#include <chrono>
#include <cstdint>

namespace weir::apps {

class memory_returner {
 public:
  static constexpr std::chrono::seconds every{10};  // between two calls of tick()

  // Sets the allocator's thresholds, for the whole process. Without fixed thresholds glibc raises them to
  // twice the largest block that was ever freed, 64 MiB at most, and keeps so much at the end of every arena.
  memory_returner();

  // Gives free memory back if the process has grown by 16 MiB since tick() last did, and once a minute if the
  // process is 16 MiB larger than at the first call.
  void tick();

 private:
  std::uint64_t at_first_ = 0, after_last_ = 0;  // resident bytes
  unsigned ticks_since_ = 0;                     // since memory was last given back
};

}  // namespace weir::apps
