#include "core/sample/token_counts.h"

#include <bit>
#include <cassert>

namespace weir::core {

token_counts::token_counts(std::uint32_t distinct)
    : slots_(std::bit_ceil(std::size_t{distinct} * 2 + 2), -1) {
  entries_.reserve(distinct);
}

void token_counts::add(token_id id, bool output) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = (static_cast<std::uint32_t>(id) * 0x9E3779B1u) & mask;
  while (slots_[at] >= 0 && entries_[static_cast<std::size_t>(slots_[at])].id != id) at = (at + 1) & mask;
  if (slots_[at] < 0) {
    assert(entries_.size() < entries_.capacity());
    slots_[at] = static_cast<std::int32_t>(entries_.size());
    entries_.push_back({id, 0});
  }
  if (output) ++entries_[static_cast<std::size_t>(slots_[at])].in_output;
}

}  // namespace weir::core
