// page_pool.h — which pages of KV memory are free, which are cached, and how many tables refer to each that
// is used.
//
// The memory itself belongs to the model; a page is only a number here. Where a page lies does not matter to
// paged attention, so nothing is ever moved together. A page that was computed to its end has a name in the
// prefix tree: when its last reference goes it stays there, cached, until the memory is needed.
//
// Thread safety: the owner's thread. No call allocates after construction.
//
// Invariants:
//   1. free() + cached() + used() == total(). A page is used while somebody refers to it; of the others those
//      with a name are cached, the rest is free.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "core/cache/host_tier.h"
#include "core/cache/prefix_tree.h"

namespace weir::core {

class page_pool {
 public:
  // `below` keeps what is given up; none: it is gone.
  explicit page_pool(std::uint32_t total, host_tier* below = nullptr)
      : references_(total, 0), names_(total), below_(below) {
    free_.reserve(total);
    for (std::uint32_t i = total; i > 0; --i) free_.push_back(static_cast<page_id>(i - 1));
  }

  std::uint32_t total() const noexcept { return static_cast<std::uint32_t>(references_.size()); }
  std::uint32_t free() const noexcept { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t cached() const noexcept { return names_.idle(); }
  std::uint32_t used() const noexcept { return total() - free() - cached(); }
  std::uint32_t available() const noexcept { return free() + cached(); }  // what take() could give
  std::uint32_t references(page_id p) const { return references_[index(p)]; }
  const prefix_tree& names() const noexcept { return names_; }

  // A page with one reference and no name: a free one, else the cached one that is given up first.
  // REQUIRES: available() > 0.
  page_id take() {
    assert(available() > 0);
    page_id p = no_page;
    if (free_.empty()) {
      p = names_.evict();
      if (below_) below_->put(p, names_.name_of(p), names_.ids_of(p));
    } else {
      p = free_.back();
      free_.pop_back();
    }
    references_[index(p)] = 1;
    return p;
  }

  // A page called `name` that was given up comes back into a page of the pool, with one reference; no_page
  // where nobody kept it, or no page can be had. REQUIRES: as prefix_tree::insert.
  page_id revive(page_id parent, page_name before, page_name name, page_ids ids) {
    if (!below_ || available() == 0 || !below_->holds(name, ids)) return no_page;
    const page_id p = take();
    if (below_->take_back(name, ids, p)) {
      names_.insert(p, parent, before, name, ids);
      return p;
    }
    release(p);
    return no_page;
  }

  // One more reference. REQUIRES: the page is used or cached.
  void share(page_id p) {
    if (references_[index(p)]++ == 0) names_.wake(p);
  }

  // One reference less; the last one frees the page, or leaves it to the cache. REQUIRES: the page is used.
  // Of a sequence's pages the last goes first.
  void release(page_id p) {
    assert(references(p) > 0);
    if (--references_[index(p)] > 0) return;
    ++releases_;
    if (names_.holds(p)) {
      names_.rest(p);
    } else {
      free_.push_back(p);
    }
  }

  // Gives a used page its name; see prefix_tree::insert.
  void name(page_id p, page_id parent, page_name before, page_name name, page_ids ids) {
    assert(references(p) > 0);
    names_.insert(p, parent, before, name, ids);
  }

  // How often a last reference went: who found no room looks again when this has changed.
  std::uint64_t releases() const noexcept { return releases_; }

 private:
  static std::size_t index(page_id p) { return static_cast<std::size_t>(p); }

  std::vector<std::uint32_t> references_;  // [total]
  std::vector<page_id> free_;  // a stack: the page freed last is taken first, while caches know it
  prefix_tree names_;
  host_tier* below_;
  std::uint64_t releases_ = 0;
};

}  // namespace weir::core
