// The end of a page pool, and how pages leave.
#include "core/cache/page_pool.h"

#include <algorithm>
#include <utility>

namespace weir::core {

void page_pool::set_end(std::uint32_t end) {
  assert(end >= 1 && end <= capacity());
  const std::uint32_t before = end_;
  const bool left = leaving_ > 0;
  end_ = end;
  if (!left) top_ = before;
  top_ = std::max(top_, end);
  std::erase_if(free_, [&](page_id p) { return leaves(p); });
  leaving_ = leaving_idle_ = 0;
  for (std::uint32_t i = top_; i > std::min(before, end); --i) {
    const auto p = static_cast<page_id>(i - 1);
    const bool used = references(p) > 0, kept = used || names_.holds(p);
    if (leaves(p)) {
      leaving_ += kept;
      leaving_idle_ += kept && !used;
    } else if (!kept && i > before) {
      free_.push_back(p);
    }
  }
  ++releases_;
}

void page_pool::choose_moves(std::vector<page_move>& moves) {
  moves.clear();
  for (std::uint32_t i = end_; i < top_ && leaving_ > 0; ++i)
    if (references_[i] > 0) moves.push_back({static_cast<page_id>(i), no_page});
  for (page_move& m : moves) m.to = take();
}

void page_pool::move(std::span<const page_move> moves) {
  names_.move(moves);
  for (const page_move& m : moves) {
    assert(leaves(m.from) && !leaves(m.to));
    references_[index(m.to)] = std::exchange(references_[index(m.from)], 0);
    --leaving_;
  }
}

std::uint32_t page_pool::evict_leaving(std::uint32_t most) {
  std::uint32_t count = 0;
  for (std::uint32_t i = end_; i < top_ && leaving_idle_ > 0 && count < most; ++i) {
    const auto p = static_cast<page_id>(i);
    if (references_[i] > 0) continue;
    for (; names_.holds(p) && count < most; ++count) evicted(names_.evict_behind(p));
  }
  return count;
}

std::string page_pool::check() const {
  std::uint32_t leaving = 0, idle = 0;
  for (std::uint32_t i = end_; i < capacity(); ++i) {
    const bool used = references_[i] > 0, kept = used || names_.holds(static_cast<page_id>(i));
    leaving += kept;
    idle += kept && !used;
  }
  if (leaving != leaving_ || idle != leaving_idle_)
    return "of the pages above the end " + std::to_string(leaving) + " are there, " + std::to_string(idle) +
           " of them cached; counted are " + std::to_string(leaving_) + " and " +
           std::to_string(leaving_idle_);
  if (std::ranges::any_of(free_, [&](page_id p) { return leaves(p); })) return "a page above the end is free";
  return {};
}

}  // namespace weir::core
