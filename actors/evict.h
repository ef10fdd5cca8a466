// evict.h — which resting models leave a device so that another one fits.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::actors {

// A model that may leave.
struct leaver {
  std::uint64_t bytes = 0;         // that it gives back
  std::uint64_t ms_to_return = 0;  // that its next load takes
  std::uint64_t jobs_lately = 0;   // that asked for it in the last 10 minutes
  std::int64_t last_use = 0;       // when it was last used, in any unit; a later one is greater

  // What its absence costs: the time that its jobs are expected to wait for it.
  std::uint64_t cost() const noexcept;
};

// Most models that leave_for() looks at: of more, those that were used the longest ago.
inline constexpr std::size_t most_leavers = 24;

// The set of `all` that gives back `bytes` and has `count` members or more, with the least sum of costs. Of
// equals, the one whose latest use was the longest ago, then the one with fewer members, then the one whose
// members come first in `all`. Ascending indices of `all`; empty where nothing has to leave. nullopt: all
// together are not enough.
std::optional<std::vector<std::size_t>> leave_for(std::span<const leaver> all, std::uint64_t bytes,
                                                  std::size_t count = 0);

}  // namespace weir::actors
