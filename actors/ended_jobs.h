// ended_jobs.h — how many jobs of a model have ended, by reason. Refused jobs are not among them.
//
// Thread safety: any thread. A reader may miss jobs that end at the same time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "core/clock.h"
#include "core/token_sink.h"

namespace weir::actors {

class ended_jobs {
 public:
  using counts = std::array<std::uint64_t, core::finish_reasons>;  // by finish_reason

  void add(core::finish_reason why, core::time_point now) noexcept {
    by_reason_[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
    last_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  // When the last of them ended; nullopt: none did.
  std::optional<core::time_point> last() const noexcept {
    const auto at = last_.load(std::memory_order_relaxed);
    return at == 0 ? std::nullopt : std::optional(core::time_point(core::duration(at)));
  }
  counts look() const noexcept {
    counts out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = by_reason_[i].load(std::memory_order_relaxed);
    return out;
  }

 private:
  std::array<std::atomic<std::uint64_t>, core::finish_reasons> by_reason_{};
  std::atomic<std::int64_t> last_{0};  // in the clock's units; 0: no job has ended
};

}  // namespace weir::actors
