// page_pool.h — which pages of KV memory are free, which are cached, and how many page tables refer to each
// used one.
//
// The memory belongs to the model; here a page is only a number. Paged attention does not care where a page
// lies, so pages are never moved. A page that was computed completely has a name in the prefix tree. When its
// last reference is released it stays there, cached, until its memory is needed.
//
// Thread safety: the owner's thread only. No call allocates after construction.
//
// Invariants:
//   1. free() + cached() + used() == total(). A page is used while it has references. Of the other pages,
//      those with a name are cached and the rest is free.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "core/cache/host_tier.h"
#include "core/cache/prefix_tree.h"

namespace weir::core {

class page_pool {
 public:
  // `below` receives the cached pages whose memory is taken; null: they are lost. It must outlive the pool.
  explicit page_pool(std::uint32_t total, host_tier* below = nullptr)
      : references_(total, 0), names_(total), below_(below) {
    free_.reserve(total);
    for (std::uint32_t i = total; i > 0; --i) free_.push_back(static_cast<page_id>(i - 1));
  }

  std::uint32_t total() const noexcept { return static_cast<std::uint32_t>(references_.size()); }
  std::uint32_t free() const noexcept { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t cached() const noexcept { return names_.idle(); }
  std::uint32_t used() const noexcept { return total() - free() - cached(); }
  std::uint32_t available() const noexcept { return free() + cached(); }  // pages that take() can return
  std::uint32_t references(page_id p) const { return references_[index(p)]; }
  const prefix_tree& names() const noexcept { return names_; }

  // A page with one reference and no name: a free one if there is any, else the cached one that
  // prefix_tree::evict() chooses, whose contents go to the host tier. REQUIRES: available() > 0.
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

  // Copies the page called `name` from the host tier into a page with one reference. Returns no_page if the
  // tier does not hold the name or no page is available. REQUIRES: as prefix_tree::insert().
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

  // Adds a reference. REQUIRES: the page is used or cached.
  void share(page_id p) {
    if (references_[index(p)]++ == 0) names_.wake(p);
  }

  // Removes a reference. Without references a page with a name is cached, any other is free. REQUIRES: the
  // page is used. A sequence must release its last page first.
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

  // Names a used page; see prefix_tree::insert().
  void name(page_id p, page_id parent, page_name before, page_name name, page_ids ids) {
    assert(references(p) > 0);
    names_.insert(p, parent, before, name, ids);
  }

  // Makes all cached pages free. Their contents go to the host tier, those that rested the longest first.
  void forget_cached() {
    while (names_.idle() > 0) {
      const page_id p = names_.evict();
      if (below_) below_->put(p, names_.name_of(p), names_.ids_of(p));
      free_.push_back(p);
      ++releases_;
    }
  }

  // How often a last reference was removed, or a cached page was made free. While it does not change, a job
  // that found no room finds none.
  std::uint64_t releases() const noexcept { return releases_; }

 private:
  static std::size_t index(page_id p) { return static_cast<std::size_t>(p); }

  std::vector<std::uint32_t> references_;  // [total]
  std::vector<page_id> free_;  // a stack: the page freed last is taken first
  prefix_tree names_;
  host_tier* below_;
  std::uint64_t releases_ = 0;
};

}  // namespace weir::core
