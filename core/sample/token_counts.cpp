#include "core/sample/token_counts.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>

namespace weir::core {
namespace {

std::size_t slots_for(std::uint32_t distinct) { return std::bit_ceil(std::size_t{distinct} * 2 + 2); }

}  // namespace

std::uint64_t token_counts::bytes_for(std::uint32_t distinct) noexcept {
  return slots_for(distinct) * sizeof(std::uint32_t) + std::uint64_t{distinct} * sizeof(entry);
}

std::uint32_t* token_counts::untouched::allocate(std::size_t n) {
  if (void* p = std::calloc(n, sizeof(std::uint32_t))) return static_cast<std::uint32_t*>(p);
  throw std::bad_alloc();
}

token_counts::token_counts(token_set prompt, std::uint32_t distinct)
    : prompt_(std::move(prompt)), slots_(slots_for(distinct)) {
  output_.reserve(distinct);
}

std::size_t token_counts::slot_of(token_id id) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = (static_cast<std::uint32_t>(id) * 0x9E3779B1u) & mask;
  while (slots_[at] != 0 && output_[slots_[at] - 1].id != id) at = (at + 1) & mask;
  return at;
}

// A token that the output no longer has is the last of output_, and no other was added behind its slot.
void token_counts::take_back(token_id id) {
  const std::size_t at = slot_of(id);
  assert(slots_[at] != 0);
  if (--output_[slots_[at] - 1].in_output > 0) return;
  assert(slots_[at] == output_.size());
  output_alone_ -= output_.back().in_prompt == not_in_prompt ? 1 : 0;
  output_.pop_back();
  slots_[at] = 0;
}

void token_counts::add(token_id id) {
  const std::size_t at = slot_of(id);
  if (slots_[at] != 0) return void(++output_[slots_[at] - 1].in_output);
  assert(output_.size() < output_.capacity());
  const auto found = std::ranges::lower_bound(prompt_, id);
  const bool there = found != prompt_.end() && *found == id;
  const auto place = there ? static_cast<std::uint32_t>(found - prompt_.begin()) : not_in_prompt;
  output_alone_ += there ? 0 : 1;
  output_.push_back({id, 1, place});
  slots_[at] = static_cast<std::uint32_t>(output_.size());
}

}  // namespace weir::core
