// pools.h — pools of pages that give way to a newcomer and grow again: which of them change, and by how much.
//
// A pool changes by whole steps. It gives no page that is in use, and none below its floor; so a sequence
// that it has admitted still fits. Cached pages are given.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::core {

// The pool of a model that is loaded, whose size was not given by a number.
struct auto_pool {
  std::uint64_t page_bytes = 0;  // of one page; 0: pages take no memory, and the pool never changes
  std::uint64_t pages = 0;       // now
  std::uint64_t floor = 0;       // pages that it keeps in any case
  std::uint64_t used = 0;        // pages that sequences had when that was last asked
  std::uint64_t most = 0;        // pages that it can have and has use of
  std::uint64_t step = 0;        // pages come and go in so many; 0: the pool never changes

  friend bool operator==(const auto_pool&, const auto_pool&) = default;
};

// Tokens of the least floor that nobody has asked for.
inline constexpr std::uint32_t least_floor_tokens = 8192;

// The floor of a pool of `pages` pages: --kv-floor where it is given (`asked`, in tokens), else a whole
// sequence and a page for each place of the batch, and at least least_floor_tokens; at least a whole sequence
// (`context`, in tokens), and at most the pool.
std::uint64_t floor_of_pool(std::uint64_t pages, std::uint64_t asked, std::uint32_t context,
                            std::uint32_t max_batch);

// Whole steps that a pool has, and those that it keeps in any case. They are equal where it gives nothing.
std::uint64_t steps_of(const auto_pool& p) noexcept;
std::uint64_t kept_steps(const auto_pool& p) noexcept;
// Bytes of one step, and those that the pool gives at most.
std::uint64_t step_bytes(const auto_pool& p) noexcept;
std::uint64_t most_given(const auto_pool& p) noexcept;
// The pages of a pool that keeps so many of its steps: all of its pages where it keeps all of its steps.
std::uint64_t pages_at(const auto_pool& p, std::uint64_t steps) noexcept;

// The pages of each pool once they have given `bytes` or more together. The largest give first, down to equal
// bytes; each step that can stay stays. nullopt: all together give less.
std::optional<std::vector<std::uint64_t>> give_way(std::span<const auto_pool> all, std::uint64_t bytes);

struct pool_growth {
  std::size_t pool = 0;     // its index
  std::uint64_t pages = 0;  // that it has then
};
// Which pool grows next where so many bytes are free: of those that can, the one with the fewest bytes, by as
// many steps as `piece` bytes have room for, and by one at least. nullopt: none can.
std::optional<pool_growth> next_to_grow(std::span<const auto_pool> all, std::uint64_t free,
                                        std::uint64_t piece = 0);

}  // namespace weir::core
