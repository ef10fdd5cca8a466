// token_index.h — numbers the different tokens of a sequence: 0, 1, 2, … in the order of their appearance.
//
// An open-addressing table, sized once. Nothing allocates after the constructor.
//
// Thread safety: the owner's thread only.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#include "core/token.h"

namespace weir::core {

class token_index {
 public:
  // Room for `distinct` different tokens.
  explicit token_index(std::size_t distinct) : slots_(slots_for(distinct)) { ids_.reserve(distinct); }

  static std::uint64_t bytes_for(std::size_t distinct) noexcept {
    return slots_for(distinct) * sizeof(std::uint32_t) + distinct * sizeof(token_id);
  }

  std::size_t size() const noexcept { return ids_.size(); }

  // The token's number; size() before the call where the token is new. REQUIRES: there is room for it.
  std::size_t number(token_id id) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (static_cast<std::uint32_t>(id) * 0x9E3779B1u) & mask;
    while (slots_[at] != 0 && ids_[slots_[at] - 1] != id) at = (at + 1) & mask;
    if (slots_[at] != 0) return slots_[at] - 1;
    assert(ids_.size() < ids_.capacity());
    ids_.push_back(id);
    slots_[at] = static_cast<std::uint32_t>(ids_.size());
    return ids_.size() - 1;
  }

 private:
  static std::size_t slots_for(std::size_t distinct) noexcept { return std::bit_ceil(distinct * 2 + 2); }

  std::vector<token_id> ids_;
  std::vector<std::uint32_t> slots_;  // [a power of two] 0, or one more than an index into ids_
};

}  // namespace weir::core
