// page_table.h — one sequence's pages, in order: row r of its keys and values lies in page r / page_tokens.
//
// Thread safety: the owner's thread. A table must be empty before it is destroyed (its pages belong to a pool
// that it does not know), which an assertion checks.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/cache/page_pool.h"

namespace weir::core {

constexpr std::uint32_t pages_for(std::uint64_t rows) {
  return static_cast<std::uint32_t>((rows + page_tokens - 1) / page_tokens);
}

class page_table {
 public:
  page_table() = default;
  page_table(const page_table&) = delete;
  page_table& operator=(const page_table&) = delete;
  ~page_table() { assert(pages_.empty()); }

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(pages_.size()); }
  std::span<const page_id> all() const noexcept { return pages_; }

  // Room for so many pages, so that growing does not allocate.
  void reserve(std::uint32_t pages) { pages_.reserve(pages); }

  // The pages that hold the first `rows` rows. REQUIRES: pages_for(rows) <= size().
  std::span<const page_id> holding(std::uint32_t rows) const {
    assert(pages_for(rows) <= size());
    return std::span(pages_).first(pages_for(rows));
  }

  // Makes room for `rows` rows, or changes nothing and returns false where the pool has not enough.
  bool grow(page_pool& pool, std::uint32_t rows) {
    const std::uint32_t wanted = pages_for(rows);
    if (wanted <= size()) return true;
    if (wanted - size() > pool.available()) return false;
    while (size() < wanted) pages_.push_back(pool.take());
    return true;
  }

  // The next page is one that somebody computed already; its reference becomes the table's.
  void append(page_id p) { pages_.push_back(p); }

  // The page at `index` is another from now on: its reference becomes the table's, and the old one's goes.
  void replace(page_pool& pool, std::uint32_t index, page_id p) {
    std::swap(pages_[index], p);
    pool.release(p);
  }

  // The last page goes first, so that no page is in use behind one that is not.
  void release(page_pool& pool) {
    for (; !pages_.empty(); pages_.pop_back()) pool.release(pages_.back());
  }

 private:
  std::vector<page_id> pages_;
};

}  // namespace weir::core
