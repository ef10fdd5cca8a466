// page_index.h — a hash table from keys to pages, several pages to a key, the newest first. Its chains are
// links in an array.
//
// Thread safety: the owner's thread only. No call allocates after construction; memory is touched as pages
// come into use.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#include "core/cache/page.h"

namespace weir::core {

class page_index {
 public:
  explicit page_index(std::uint32_t pages) : heads_(std::bit_ceil(std::max(pages, 1u)), no_page) {
    links_.reserve(pages);
  }

  // REQUIRES: the page is not in the index.
  void add(std::uint64_t key, page_id p) {
    page_id& head = heads_[bucket(key)];
    if (index(p) >= links_.size()) links_.resize(index(p) + 1);
    links_[index(p)] = {key, no_page, head};
    if (head != no_page) links_[index(head)].before = p;
    head = p;
  }

  // REQUIRES: the page is in the index.
  void remove(page_id p) {
    const link& l = links_[index(p)];
    (l.before == no_page ? heads_[bucket(l.key)] : links_[index(l.before)].after) = l.after;
    if (l.after != no_page) links_[index(l.after)].before = l.before;
  }

  // Page `to` takes the place of page `from`. REQUIRES: `from` is in the index, `to` < `from` is not.
  void move(page_id from, page_id to) {
    const link l = links_[index(from)];
    (l.before == no_page ? heads_[bucket(l.key)] : links_[index(l.before)].after) = to;
    if (l.after != no_page) links_[index(l.after)].before = to;
    links_[index(to)] = l;
  }

  // The newest page with this key, or no_page.
  page_id first(std::uint64_t key) const { return same(key, heads_[bucket(key)]); }
  // The next older page with the same key as `p`, or no_page. REQUIRES: `p` is in the index.
  page_id next(page_id p) const { return same(links_[index(p)].key, links_[index(p)].after); }

 private:
  struct link {
    std::uint64_t key = 0;
    page_id before = no_page, after = no_page;
  };
  static std::size_t index(page_id p) { return static_cast<std::size_t>(p); }
  std::size_t bucket(std::uint64_t key) const { return key & (heads_.size() - 1); }
  page_id same(std::uint64_t key, page_id p) const {
    while (p != no_page && links_[index(p)].key != key) p = links_[index(p)].after;
    return p;
  }

  std::vector<page_id> heads_;  // [a power of two >= pages]
  std::vector<link> links_;     // [pages in use so far]
};

}  // namespace weir::core
