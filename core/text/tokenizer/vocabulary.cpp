#include "core/text/tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace weir::core {

vocabulary::vocabulary(const std::vector<std::pair<std::string_view, token_id>>& pieces) {
  slots_.assign(std::bit_ceil(pieces.size() * 2 + 2), -1);
  ids_.reserve(pieces.size());
  for (const auto& [piece, id] : pieces) {
    const auto entry = static_cast<std::int32_t>(ids_.size());
    pieces_.add(piece);
    ids_.push_back(id);
    if (static_cast<std::size_t>(id) >= entry_of_.size())
      entry_of_.resize(static_cast<std::size_t>(id) + 1, -1);
    entry_of_[static_cast<std::size_t>(id)] = entry;
    std::size_t slot = home(piece);
    while (slots_[slot] >= 0 && pieces_.at(static_cast<std::size_t>(slots_[slot])) != piece) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    slots_[slot] = entry;
  }
}

std::size_t vocabulary::home(std::string_view piece) const noexcept {
  return std::hash<std::string_view>{}(piece) & (slots_.size() - 1);
}

std::optional<token_id> vocabulary::find(std::string_view piece) const noexcept {
  for (std::size_t slot = home(piece); slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const auto entry = static_cast<std::size_t>(slots_[slot]);
    if (pieces_.at(entry) == piece) return ids_[entry];
  }
  return std::nullopt;
}

std::string_view vocabulary::piece(token_id id) const noexcept {
  if (id < 0 || static_cast<std::size_t>(id) >= entry_of_.size()) return {};
  const std::int32_t entry = entry_of_[static_cast<std::size_t>(id)];
  return entry < 0 ? std::string_view() : pieces_.at(static_cast<std::size_t>(entry));
}

}  // namespace weir::core
