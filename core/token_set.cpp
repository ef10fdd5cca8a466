#include "core/token_set.h"

#include <iterator>
#include <utility>

namespace weir::core {

token_set::token_set(std::vector<token_id> ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  ids.erase(ids.begin(), std::ranges::lower_bound(ids, 0));
  for (const token_id id : ids) filter_ |= bit_of(id);
  ids_ = std::move(ids);
}

std::span<const token_id> token_set::below(std::uint32_t vocab_size) const noexcept {
  const auto first_outside = std::ranges::lower_bound(
      ids_, vocab_size, {}, [](token_id id) { return static_cast<std::uint32_t>(id); });
  return ids().first(static_cast<std::size_t>(first_outside - ids_.begin()));
}

token_set token_set::with(const token_set& other) const {
  if (std::ranges::includes(ids_, other.ids_)) return *this;
  if (std::ranges::includes(other.ids_, ids_)) return other;
  std::vector<token_id> both(ids_.begin(), ids_.end());
  both.insert(both.end(), other.begin(), other.end());
  return both;
}

}  // namespace weir::core
