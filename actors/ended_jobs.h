// ended_jobs.h — how many jobs of a model have ended, by reason. Refused jobs are not among them.
//
// Thread safety: any thread. A reader may miss jobs that end at the same time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/token_sink.h"

namespace weir::actors {

class ended_jobs {
 public:
  using counts = std::array<std::uint64_t, core::finish_reasons>;  // by finish_reason

  void add(core::finish_reason why) noexcept {
    by_reason_[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  }
  counts look() const noexcept {
    counts out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = by_reason_[i].load(std::memory_order_relaxed);
    return out;
  }

 private:
  std::array<std::atomic<std::uint64_t>, core::finish_reasons> by_reason_{};
};

}  // namespace weir::actors
