// page_pool.h — which pages of KV memory are free, which are cached, and how many page tables refer to each
// used one.
//
// The memory belongs to the model; here a page is only a number. Paged attention does not care where a page
// lies, so pages are moved only where the pool gives way. A page that was computed completely has a name in
// the prefix tree. When its last reference is released it stays there, cached, until its memory is needed.
//
// The pool ends below a number, which may change. Pages at or above the end that are used or cached leave:
// nobody takes them, and once nothing refers to them they are gone.
//
// Thread safety: the owner's thread only. No call allocates after construction, but for move().
//
// Invariants:
//   1. free() + cached() + used() == total(). A page is used while it has references. Of the other pages,
//      those with a name are cached and the rest is free, or gone where the pool ends below it.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/cache/host_tier.h"
#include "core/cache/prefix_tree.h"

namespace weir::core {

class page_pool {
 public:
  // `below` receives the cached pages whose memory is taken; null: they are lost. It must outlive the pool.
  // `most`: the highest end that the pool may have; by default it has it from the beginning.
  explicit page_pool(std::uint32_t total, host_tier* below = nullptr, std::uint32_t most = 0)
      : references_(most > total ? most : total, 0),
        names_(capacity()),
        below_(below),
        end_(total),
        top_(total) {
    free_.reserve(capacity());
    for (std::uint32_t i = total; i > 0; --i) free_.push_back(static_cast<page_id>(i - 1));
  }

  std::uint32_t total() const noexcept { return end_ + leaving_; }
  std::uint32_t free() const noexcept { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t cached() const noexcept { return names_.idle(); }
  std::uint32_t used() const noexcept { return total() - free() - cached(); }
  // Pages that take() can return.
  std::uint32_t available() const noexcept { return free() + cached() - leaving_idle_; }
  std::uint32_t references(page_id p) const { return references_[index(p)]; }
  const prefix_tree& names() const noexcept { return names_; }

  // The numbers that pages can have, and the end of the pool. Pages at or above the end that are still there.
  std::uint32_t capacity() const noexcept { return static_cast<std::uint32_t>(references_.size()); }
  std::uint32_t end() const noexcept { return end_; }
  std::uint32_t leaving() const noexcept { return leaving_; }
  // Moves the end, up or down. REQUIRES: 1 <= end <= capacity()
  void set_end(std::uint32_t end);

  // Chooses a page below the end for each used one that leaves, as take() does, and lists all of them in
  // `moves`. Nothing has moved then: the caller copies the pages, calls move(), and changes the tables.
  // REQUIRES: available() is at least their number
  void choose_moves(std::vector<page_move>& moves);
  // References and names of the pages are those of the pages that they were copied from.
  void move(std::span<const page_move> moves);

  // Makes cached pages that leave gone, and before them those that are cached behind them free, until none is
  // left or `most` pages were evicted. Their contents go to the host tier. Returns how many were evicted.
  std::uint32_t evict_leaving(std::uint32_t most);

  // A page with one reference and no name: a free one if there is any, else the cached one that
  // prefix_tree::evict() chooses, whose contents go to the host tier. REQUIRES: available() > 0.
  page_id take() {
    assert(available() > 0);
    page_id p = no_page;
    if (free_.empty()) {
      do {
        p = names_.evict();
        keep_below(p);
      } while (goes(p));
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
    if (references_[index(p)]++ > 0) return;
    names_.wake(p);
    if (leaves(p)) --leaving_idle_;
  }

  // Removes a reference. Without references a page with a name is cached, any other is free. REQUIRES: the
  // page is used. A sequence must release its last page first.
  void release(page_id p) {
    assert(references(p) > 0);
    if (--references_[index(p)] > 0) return;
    ++releases_;
    if (names_.holds(p)) {
      names_.rest(p);
      if (leaves(p)) ++leaving_idle_;
    } else if (leaves(p)) {
      --leaving_;
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
    while (names_.idle() > 0) evicted(names_.evict());
  }

  // How often a last reference was removed, a cached page was made free, or the end was moved. While it does
  // not change, a job that found no room finds none.
  std::uint64_t releases() const noexcept { return releases_; }

  // Checks what the pool counts of pages that leave; returns an empty string, or a description of a
  // violation.
  std::string check() const;

 private:
  static std::size_t index(page_id p) { return static_cast<std::size_t>(p); }
  bool leaves(page_id p) const { return static_cast<std::uint32_t>(p) >= end_; }
  void keep_below(page_id p) {
    if (below_) below_->put(p, names_.name_of(p), names_.ids_of(p));
  }
  // Whether a page that was just evicted is gone.
  bool goes(page_id p) {
    if (!leaves(p)) return false;
    --leaving_;
    --leaving_idle_;
    return true;
  }
  // A cached page was evicted.
  void evicted(page_id p) {
    keep_below(p);
    if (!goes(p)) free_.push_back(p);
    ++releases_;
  }

  std::vector<std::uint32_t> references_;  // [capacity]
  std::vector<page_id> free_;              // a stack: the page freed last is taken first
  prefix_tree names_;
  host_tier* below_;
  std::uint64_t releases_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t top_ = 0;           // no page at or above it is used or cached; at least end_
  std::uint32_t leaving_ = 0;       // pages at or above the end that are used or cached
  std::uint32_t leaving_idle_ = 0;  // the cached ones of them
};

}  // namespace weir::core
