#include "actors/engine_sleepers.h"

namespace weir::actors {
namespace {

// Cached pages are gone, and the memory of all pages is free.
engine_picture asleep(engine_picture p) {
  p.asleep = true;
  p.used = {};
  p.landmarks.reset();
  p.bad_endings = 0;
  p.counts.pages_total = p.counts.pages_free = p.counts.pages_cached = p.counts.pages_used = 0;
  return p;
}

}  // namespace

const engine_sleepers::sleeper* engine_sleepers::at(engine_id id) const noexcept {
  const auto s = std::ranges::find(all_, id, [](const sleeper& x) { return x.place.served->engine; });
  return s == all_.end() ? nullptr : &*s;
}

void engine_sleepers::add(engine_place e) {
  auto shown = asleep(e.look());
  all_.push_back({std::move(e), std::move(shown)});
}

std::unique_ptr<core::engine> engine_sleepers::give_out(engine_id id) {
  auto& s = *at(id);
  if (s.place.engine) s.away = true;
  return std::move(s.place.engine);
}

engine_place engine_sleepers::take_out(sleeper& s) {
  auto out = std::move(s.place);
  all_.erase(all_.begin() + (&s - all_.data()));
  return out;
}

std::optional<engine_place> engine_sleepers::take_back(nap_ended& m, loader& by) {
  auto* const s = at(m.engine);
  if (s) s->away = false;
  const bool unusable = !s || s->lost;
  if (unusable && m.result)
    m.result = s ? core::make_error(core::errc::internal, "its device failed meanwhile")
                 : core::make_error(core::errc::unavailable, "the model was unloaded meanwhile");
  if (unusable) {
    if (m.held) by.destroy(std::move(m.held), [] {});
    return std::nullopt;
  }
  s->place.engine = std::move(m.held);
  if (!s->place.engine) return std::nullopt;
  s->shown = asleep(s->place.look());
  const bool is_awake = (m.what == nap::wake) == m.result.has_value();
  if (!is_awake) return std::nullopt;
  return take_out(*s);
}

std::optional<engine_sleepers::closed> engine_sleepers::close(engine_id id) {
  auto* const s = at(id);
  if (!s) return std::nullopt;
  closed out;
  out.totals = s->shown.counts;
  out.engine = take_out(*s).engine;
  return out;
}

void engine_sleepers::lose_all(loader& by) {
  for (auto& s : all_) {
    s.lost = true;
    if (s.place.engine) by.destroy(std::move(s.place.engine), [] {});
  }
}

void engine_sleepers::set_share(engine_id id, double weight) {
  auto* const s = at(id);
  if (!s) return;
  s->place.share.set_weight(weight);
  s->place.spec.share = weight;
  s->shown.share = weight;
}

void engine_sleepers::look(std::vector<engine_picture>& out) const {
  for (const auto& s : all_) out.push_back(s.shown);
}

}  // namespace weir::actors
