// The size of an engine's pool: it gives way, and grows again.
#include <algorithm>

#include "core/engine_state.h"

namespace weir::core {

std::optional<error> engine::state::refuses_end(std::int32_t pages) const {
  const std::uint32_t least = pages_for(longest);
  if (pages < 1 || static_cast<std::uint32_t>(pages) < least)
    return make_error(errc::does_not_fit, "a sequence of {} tokens needs {} pages, and {} would be left",
                      longest, least, pages);
  const auto end = static_cast<std::uint32_t>(pages);
  if (end > pool.capacity())
    return make_error(errc::does_not_fit, "the pool has {} pages at most, not {}", pool.capacity(), pages);
  if (pool.used() > end)
    return make_error(errc::busy, "{} pages are in use by running sequences, and {} would be left",
                      pool.used(), pages);
  return std::nullopt;
}

result<bool> engine::state::move_used() {
  std::vector<page_move> moves;
  std::vector<page_copy> copies = plan.take_copies();
  pool.choose_moves(moves);
  for (const page_move& m : moves) copies.push_back({m.from, m.to});
  if (copies.empty()) return false;
  if (auto done = device->move_pages(copies); !done) {
    for (const page_move& m : moves) pool.release(m.to);
    return done.error();
  }
  if (moves.empty()) return true;
  pool.move(moves);
  const page_id first = moves.front().from;  // they are in order
  std::vector<page_id> now_at(static_cast<std::size_t>(moves.back().from - first) + 1, no_page);
  for (const page_move& m : moves) now_at[static_cast<std::size_t>(m.from - first)] = m.to;
  plan.move_pages(first, now_at);
  totals.moved_pages += moves.size();
  return true;
}

result<bool> engine::state::evict_leaving() {
  const std::uint64_t page = std::max<std::uint64_t>(device->info().page_bytes, 1);
  const std::uint64_t most = tier ? std::max<std::uint64_t>(most_saved_at_once / page, 1) : pool.capacity();
  const std::uint32_t count =
      pool.evict_leaving(static_cast<std::uint32_t>(std::min<std::uint64_t>(most, pool.capacity())));
  totals.left_pages += count;
  if (!tier || count == 0) return false;
  if (auto done = device->move_pages({}); !done) return done.error();
  return true;
}

result<bool> engine::let_go_of_pages(std::int32_t pages) {
  state& s = *s_;
  if (s.fault) return *s.fault;
  if (auto why = s.refuses_end(pages)) {
    if (s.left_behind == state::no_launch) use_pages(static_cast<std::int32_t>(s.end_before));
    return *std::move(why);
  }
  const auto end = static_cast<std::uint32_t>(pages);
  const bool begins = end < s.pool.end() || (end > s.pool.end() && s.pool.leaving() > 0);
  if (begins && s.left_behind != state::no_launch) s.end_before = s.pool.end();
  if (begins) s.pool.set_end(end);
  if (begins || s.left_behind == state::no_launch) s.left_behind = s.launches;
  const auto fails = [&](const error& e) {
    s.fail_all(e);
    return e;
  };
  const auto moved = s.move_used();
  if (!moved) return fails(moved.error());
  const auto saved = s.evict_leaving();
  if (!saved) return fails(saved.error());
  if (s.pool.leaving() > 0) {
    s.left_behind = state::no_launch;
    return false;
  }
  if (*moved || *saved) s.left_behind = 0;
  return s.landed_launches() >= s.left_behind;
}

void engine::use_pages(std::int32_t pages) {
  s_->left_behind = 0;
  s_->pool.set_end(static_cast<std::uint32_t>(pages));
}

std::int32_t engine::pages() const noexcept { return s_->device->pages(); }
std::int32_t engine::most_pages() const noexcept { return s_->device->most_pages(); }
std::int32_t engine::page_step() const noexcept { return s_->device->page_step(); }
result<void> engine::set_pages(std::int32_t pages) { return s_->device->set_pages(pages); }

}  // namespace weir::core
