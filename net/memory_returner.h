// memory_returner.h — returns free memory of the allocator to the system.
//
// glibc keeps freed memory for later allocations. After very many connections there is free memory in all its
// arenas, which glibc would keep for as long as the process runs.
//
// Thread safety: one thread. While tick() gives memory back, allocations of other threads may wait.
#pragma once

#include <chrono>
#include <cstdint>

namespace weir::net {

class memory_returner {
 public:
  static constexpr std::chrono::seconds every{10};  // between two calls of tick()

  // Sets fixed thresholds of the allocator, for the whole process. Otherwise glibc raises its thresholds to
  // twice the largest block that was ever freed, at most 64 MiB, and keeps that much at the end of every
  // arena.
  memory_returner();

  // Returns free memory if the process has grown by 16 MiB since memory was last returned, and once a minute
  // if the process is 16 MiB larger than at the first call.
  void tick();

 private:
  std::uint64_t at_first_ = 0, after_last_ = 0;  // resident bytes
  unsigned ticks_since_ = 0;                     // calls of tick() since memory was last returned
};

}  // namespace weir::net
