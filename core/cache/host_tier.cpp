#include "core/cache/host_tier.h"

#include <algorithm>
#include <cassert>

namespace weir::core {

host_tier::host_tier(model& device, std::uint32_t pages)
    : device_(device), slots_(pages), by_name_(pages) {
  assert(pages > 0);
}

void host_tier::put(page_id p, page_name name, page_ids ids) {
  if (holds(name, ids)) return;
  const auto at = static_cast<std::int32_t>(next_);
  slot& s = slots_[next_];
  if (s.held) drop(at);
  if (!device_.save_page(p, next_)) return;
  s.name = name;
  std::ranges::copy(ids, s.ids.begin());
  s.held = true;
  by_name_.add(name.lo, at);
  ++used_;
  next_ = (next_ + 1) % total();
}

bool host_tier::take_back(page_name name, page_ids ids, page_id to) {
  const std::int32_t at = find(name, ids);
  if (at == no_page) return false;
  const bool done = device_.restore_page(to, static_cast<std::uint32_t>(at)).has_value();
  drop(at);
  if (done) ++restored_;
  return done;
}

std::int32_t host_tier::find(page_name name, page_ids ids) const {
  for (std::int32_t at = by_name_.first(name.lo); at != no_page; at = by_name_.next(at)) {
    const slot& s = slots_[static_cast<std::size_t>(at)];
    if (s.name == name && std::ranges::equal(s.ids, ids)) return at;
  }
  return no_page;
}

void host_tier::drop(std::int32_t slot) {
  by_name_.remove(slot);
  slots_[static_cast<std::size_t>(slot)].held = false;
  --used_;
}

}  // namespace weir::core
