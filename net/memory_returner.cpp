#include "net/memory_returner.h"

#include <malloc.h>

#include "net/metrics/resident.h"

namespace weir::net {

memory_returner::memory_returner() {
  mallopt(M_TRIM_THRESHOLD, 4 << 20);  // bytes free at the end of an arena
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // larger blocks come from the system, not from an arena
}

void memory_returner::tick() {
  constexpr std::uint64_t grown = 16 << 20;
  constexpr unsigned a_minute = std::chrono::minutes(1) / every;
  const auto now = resident_bytes();
  if (at_first_ == 0) at_first_ = after_last_ = now;
  const bool for_long = ++ticks_since_ >= a_minute && now > at_first_ + grown;
  if (now <= after_last_ + grown && !for_long) return;
  malloc_trim(0);
  after_last_ = resident_bytes();
  ticks_since_ = 0;
}

}  // namespace weir::net
