// page_table.h — the pages of one sequence, in order: row r of its keys and values lies in page r /
// page_tokens.
//
// Thread safety: the owner's thread only. A table must be empty when it is destroyed, since it does not know
// the pool that its pages belong to; an assertion checks this.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/cache/page_pool.h"

namespace weir::core {

class page_table {
 public:
  page_table() = default;
  page_table(const page_table&) = delete;
  page_table& operator=(const page_table&) = delete;
  ~page_table() { assert(pages_.empty()); }

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(pages_.size()); }
  std::span<const page_id> all() const noexcept { return pages_; }

  // Reserves memory for the numbers of `pages` pages. Up to this size, grow() and append() do not allocate.
  void reserve(std::uint32_t pages) { pages_.reserve(pages); }

  // The pages that hold the first `rows` rows. REQUIRES: pages_for(rows) <= size().
  std::span<const page_id> holding(std::uint32_t rows) const {
    assert(pages_for(rows) <= size());
    return std::span(pages_).first(pages_for(rows));
  }

  // Takes pages from the pool until the table holds `rows` rows. Returns false and changes nothing if the
  // pool has not enough.
  bool grow(page_pool& pool, std::uint32_t rows) {
    const std::uint32_t wanted = pages_for(rows);
    if (wanted <= size()) return true;
    if (wanted - size() > pool.available()) return false;
    while (size() < wanted) pages_.push_back(pool.take());
    return true;
  }

  // Appends a page that was computed already. Its reference passes to the table.
  void append(page_id p) { pages_.push_back(p); }

  // Puts page `p` at `index` in place of the one there. The reference of `p` passes to the table, and the old
  // page's is released.
  void replace(page_pool& pool, std::uint32_t index, page_id p) {
    std::swap(pages_[index], p);
    pool.release(p);
  }

  // Pages from `first` on were moved: page `first + i` is now_at[i], or where it was if that is no_page.
  // Their references went with them.
  void move(page_id first, std::span<const page_id> now_at) {
    for (page_id& p : pages_) {
      if (p < first || p - first >= static_cast<page_id>(now_at.size())) continue;
      if (const page_id to = now_at[static_cast<std::size_t>(p - first)]; to != no_page) p = to;
    }
  }

  // Releases all pages but the first `kept`, the last one first.
  void shrink(page_pool& pool, std::uint32_t kept) {
    for (; size() > kept; pages_.pop_back()) pool.release(pages_.back());
  }

  // Releases all pages, the last one first, so that no page is used behind one that is not.
  void release(page_pool& pool) { shrink(pool, 0); }

 private:
  std::vector<page_id> pages_;
};

}  // namespace weir::core
