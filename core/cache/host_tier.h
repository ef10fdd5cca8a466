// host_tier.h — a second place for keys and values, behind the page pool: copies, in host memory, of the
// named pages that the pool gave up. What a device has no room for any more comes back by a copy instead of a
// computation.
//
// Pages leave in the order in which they came, to make room for others, or when they are taken back. A copy
// that fails is no copy: its page will be computed again, and a device that is broken says so at its next
// step.
//
// Copies begin in order with the device's work and are not waited for: a page is saved before its new owner
// writes, and what comes back is there before a step reads it. The bytes are the model's, and nobody looks at
// them here.
//
// Thread safety: the owner's thread. No call allocates after construction.
#pragma once

#include <array>
#include <vector>

#include "core/cache/page_index.h"
#include "core/cache/page_name.h"
#include "core/cache/prefix_tree.h"
#include "core/model/model.h"

namespace weir::core {

class host_tier {
 public:
  // REQUIRES: the model, which outlives the tier, has host memory for so many pages; pages > 0.
  host_tier(model& device, std::uint32_t pages);

  std::uint32_t total() const noexcept { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t used() const noexcept { return used_; }
  std::uint64_t restored() const noexcept { return restored_; }  // pages that were taken back

  // Keeps a copy of a page that is full, computed, and called `name`.
  void put(page_id p, page_name name, page_ids ids);

  bool holds(page_name name, page_ids ids) const { return find(name, ids) != no_page; }

  // Copies the page called `name` into `to`, and keeps it no longer. False where it is not here.
  bool take_back(page_name name, page_ids ids, page_id to);

 private:
  struct slot {
    page_name name;
    std::array<token_id, page_tokens> ids;
    bool held = false;
  };
  std::int32_t find(page_name name, page_ids ids) const;
  void drop(std::int32_t slot);

  model& device_;
  std::vector<slot> slots_;  // [pages], a ring
  page_index by_name_;       // of slots
  std::uint32_t next_ = 0, used_ = 0;
  std::uint64_t restored_ = 0;
};

}  // namespace weir::core
