// host_tier.h — the second level of the prefix cache: copies, in host memory, of named pages that the page
// pool evicted. Such a page comes back by a copy instead of a computation.
//
// A page leaves the tier when it is taken back, or to make room for another one, the oldest first. A copy
// that fails is dropped, and its page will be computed again; a broken device is found by its next step.
//
// Copies are begun in order with the forwards and not waited for (model::save_page): a page is saved before
// its new owner writes to it, and a restored page is complete before a step reads it. The bytes belong to the
// model.
//
// Thread safety: the owner's thread only. No call allocates after construction.
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
  // The model must outlive the tier. REQUIRES: the model has allocated `pages` host pages; pages > 0.
  host_tier(model& device, std::uint32_t pages);

  // Pages that it can hold, pages that it holds, and pages taken back so far.
  std::uint32_t total() const noexcept { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t used() const noexcept { return used_; }
  std::uint64_t restored() const noexcept { return restored_; }

  // Copies page `p`, which is called `name` and holds `ids`, to host memory. REQUIRES: `p` is computed
  // completely.
  void put(page_id p, page_name name, page_ids ids);

  bool holds(page_name name, page_ids ids) const { return find(name, ids) != no_page; }

  // Copies the page called `name` to page `to` of the device and drops it here. Returns false if it is not
  // here or the copy failed.
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
  page_index by_name_;       // by name; its 'pages' are slots
  std::uint32_t next_ = 0, used_ = 0;
  std::uint64_t restored_ = 0;
};

}  // namespace weir::core
