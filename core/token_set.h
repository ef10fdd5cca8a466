// token_set.h — a set of tokens that never changes, and that its copies share.
//
// Making a set sorts it. contains() is a test of one bit for nearly all tokens, else a binary search.
//
// Thread safety: as core/shared_list.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/shared_list.h"
#include "core/token.h"

namespace weir::core {

class token_set {
 public:
  token_set() = default;
  // Each id counts once, and negative ones, which are no tokens, not at all.
  token_set(std::vector<token_id> ids);
  token_set(std::initializer_list<token_id> ids) : token_set(std::vector<token_id>(ids)) {}

  bool empty() const noexcept { return ids_.empty(); }
  std::size_t size() const noexcept { return ids_.size(); }
  auto begin() const noexcept { return ids_.begin(); }
  auto end() const noexcept { return ids_.end(); }
  // The ids, rising.
  std::span<const token_id> ids() const noexcept { return ids_; }
  // The ids of a vocabulary of this size.
  std::span<const token_id> below(std::uint32_t vocab_size) const noexcept;

  // A filter in front of contains(): bit id % 64 is set for each id.
  std::uint64_t filter() const noexcept { return filter_; }
  static constexpr std::uint64_t bit_of(token_id id) noexcept {
    return std::uint64_t{1} << (static_cast<std::uint32_t>(id) % 64);
  }
  bool contains(token_id id) const noexcept {
    return (filter_ & bit_of(id)) != 0 && std::ranges::binary_search(ids_, id);
  }

  // The ids of both sets. Shares the memory of one of them if that has all ids of the other.
  token_set with(const token_set& other) const;

  // Bytes of the set, which all copies have together.
  std::uint64_t bytes() const noexcept { return ids_.bytes(); }

  friend bool operator==(const token_set& a, const token_set& b) { return a.ids_ == b.ids_; }

 private:
  shared_list<token_id> ids_;
  std::uint64_t filter_ = 0;
};

}  // namespace weir::core
