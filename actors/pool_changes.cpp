#include "actors/pool_changes.h"

#include <algorithm>
#include <utility>

#include "core/engine.h"
#include "core/insist.h"

namespace weir::actors {
namespace {

// An engine without a step under way is asked again after this time.
constexpr core::duration ask_again = std::chrono::milliseconds(1);

core::error is_gone() {
  return core::make_error(core::errc::unavailable, "this host has no such engine that is awake");
}

}  // namespace

void pool_changes::add(resize_engine m, std::uint32_t before, core::time_point now) {
  all_.push_back({std::move(m), before, now + let_go_within, nullptr});
}

bool pool_changes::has(engine_id id) const noexcept {
  return std::ranges::any_of(all_, [id](const waiting& w) { return w.what.engine == id; });
}

// Whether the loader may change the pool. An error ends the change, and the pool is as before.
bool pool_changes::let_go(waiting& w, core::engine& e, core::time_point now,
                          std::optional<core::error>& wrong) {
  if (w.what.pages >= w.before) return true;
  const auto gone = e.let_go_of_pages(static_cast<std::int32_t>(w.what.pages));
  if (!gone) {
    wrong = gone.error();
  } else if (*gone) {
    return true;
  } else if (now >= w.until) {
    e.use_pages(static_cast<std::int32_t>(w.before));
    wrong = core::make_error(core::errc::busy, "pages from {} on are still in use after {} s", w.what.pages,
                             std::chrono::duration_cast<std::chrono::seconds>(let_go_within).count());
  }
  return false;
}

core::time_point pool_changes::advance(core::time_point now, const finder& find, loader& by,
                                       const ref<owner_msg>& to) {
  auto next = core::time_point::max();
  for (auto all = std::exchange(all_, {}); auto& w : all) {
    if (w.word) {
      all_.push_back(std::move(w));
      continue;
    }
    auto* const e = find(w.what.engine);
    std::optional<core::error> wrong;
    if (!e) wrong = is_gone();
    if (e && let_go(w, *e, now, wrong)) {
      w.word = std::make_shared<pool_change_word>(*e, w.what.pages);
      by.set_pages(w.word, [to, id = w.what.engine, word = w.word](core::result<> r) {
        core::insist([&] { to.tell(pages_set(id, word, r)); });
      });
    }
    if (wrong) {
      w.what.answer(resize_engine::result(std::move(*wrong)));
      continue;
    }
    if (!w.word) next = std::min(next, std::min(w.until, now + ask_again));
    all_.push_back(std::move(w));
  }
  return next;
}

std::optional<core::error> pool_changes::end(pages_set& m, const finder& find) {
  const auto at = std::ranges::find(all_, m.change, &waiting::word);
  if (at == all_.end()) return std::nullopt;  // it was lost with its engine, and is answered
  waiting w = std::move(*at);
  all_.erase(at);
  std::optional<core::error> fault;
  if (auto* const e = find(m.engine))
    e->use_pages(static_cast<std::int32_t>(m.result ? w.what.pages : w.before));
  if (!m.result && m.result.error().code == core::errc::internal) fault = m.result.error();
  w.what.answer(resize_engine::result(std::move(m.result)));
  return fault;
}

void pool_changes::lose(waiting& w) {
  if (w.word) w.word->close();
  w.what.answer(resize_engine::result(is_gone()));
}

void pool_changes::lose(engine_id id) {
  for (auto all = std::exchange(all_, {}); auto& w : all)
    if (w.what.engine == id)
      lose(w);
    else
      all_.push_back(std::move(w));
}

void pool_changes::lose_all() {
  for (auto all = std::exchange(all_, {}); auto& w : all) lose(w);
}

}  // namespace weir::actors
