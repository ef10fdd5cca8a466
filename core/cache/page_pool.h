// page_pool.h — which pages of KV memory are free, and how many tables refer to each that is not.
//
// The memory itself belongs to the model; a page is only a number here. Where a page lies does not matter to
// paged attention, so nothing is ever moved together.
//
// Thread safety: the owner's thread. No call allocates after construction.
//
// Invariants:
//   1. free() + used() == total(); a page is free exactly while nobody refers to it.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "core/schedule/batch.h"

namespace weir::core {

class page_pool {
 public:
  explicit page_pool(std::uint32_t total) : references_(total, 0) {
    free_.reserve(total);
    for (std::uint32_t i = total; i > 0; --i) free_.push_back(static_cast<page_id>(i - 1));
  }

  std::uint32_t total() const noexcept { return static_cast<std::uint32_t>(references_.size()); }
  std::uint32_t free() const noexcept { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t used() const noexcept { return total() - free(); }
  std::uint32_t references(page_id p) const { return references_[index(p)]; }

  // A page with one reference. REQUIRES: free() > 0.
  page_id take() {
    assert(!free_.empty());
    const page_id p = free_.back();
    free_.pop_back();
    references_[index(p)] = 1;
    return p;
  }

  // One more reference. REQUIRES: the page is in use.
  void share(page_id p) {
    assert(references(p) > 0);
    ++references_[index(p)];
  }

  // One reference less; the last one frees the page. REQUIRES: the page is in use.
  void release(page_id p) {
    assert(references(p) > 0);
    if (--references_[index(p)] == 0) free_.push_back(p);
  }

 private:
  static std::size_t index(page_id p) { return static_cast<std::size_t>(p); }

  std::vector<std::uint32_t> references_;  // [total]
  std::vector<page_id> free_;  // a stack: the page freed last is taken first, while caches know it
};

}  // namespace weir::core
