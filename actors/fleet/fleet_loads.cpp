// Which workers could load a model that no worker has ready, as their boards say.
#include <algorithm>
#include <utility>

#include "actors/fleet/fleet_view.h"
#include "core/fleet/choose_loader.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

model_state state_named(std::string_view text) {
  for (const auto s : {model_state::loading, model_state::ready, model_state::draining, model_state::failed,
                       model_state::asleep})
    if (text == name(s)) return s;
  return model_state::absent;
}

// The best one is shown. A model that is ready or drains there leaves for another one.
int rank_of(model_state s) {
  switch (s) {
    case model_state::loading:
      return 3;
    case model_state::asleep:
      return 2;
    case model_state::failed:
      return 0;
    default:
      return 1;
  }
}

wire::load_place place_of(const wire::fleet_board& b, const wire::known_model& m) {
  using stand = wire::load_place::stand;
  wire::load_place p;
  p.worker = b.worker;
  if (state_named(m.state) == model_state::loading)
    p.now = stand::loading;
  else if (m.wanted)
    p.now = stand::wished;
  else if (m.wakes)
    p.now = stand::asleep;
  for (const auto& d : b.devices) p.free = std::max(p.free.value_or(0), d.free);
  for (const auto& other : b.known) {
    p.jobs += other.jobs;
    const bool there = state_named(other.state) == model_state::ready;
    if (there && other.jobs == 0 && !other.pinned) p.resting += other.bytes;
  }
  return p;
}

}  // namespace

// The model, as the worker knows it; null: the worker takes its jobs already, or could not load it. A model
// of other tokens under that name counts as one that the worker has.
const wire::known_model* fleet_view::loads(const worker& w, const std::string& model) {
  if (!w.board.on_demand || w.hangs || w.board.state != wire::worker_state::ready) return nullptr;
  const bool has =
      std::ranges::any_of(w.board.models, [&](const auto& m) { return m.name == model && !m.leaves; });
  const auto at = std::ranges::find(w.board.known, model, &wire::known_model::name);
  return has || at == w.board.known.end() ? nullptr : &*at;
}

bool fleet_view::could_load(const std::string& name, const std::string& model) const {
  const auto w = workers_.find(name);
  return w != workers_.end() && loads(w->second, model);
}

bool fleet_view::loads_already(const std::string& name, const std::string& model) const {
  const auto w = workers_.find(name);
  const auto* m = w == workers_.end() ? nullptr : loads(w->second, model);
  return m && place_of(w->second.board, *m).now <= wire::load_place::stand::wished;
}

bool fleet_view::could_load(const std::string& model) const {
  return std::ranges::any_of(workers_, [&](const auto& w) { return loads(w.second, model) != nullptr; });
}

std::optional<std::string> fleet_view::loader_of(const std::string& model,
                                                 const std::vector<std::string>& besides) const {
  std::vector<wire::load_place> all;
  for (const auto& [name, w] : workers_) {
    const auto* m = loads(w, model);
    if (m && !w.suspected && std::ranges::find(besides, name) == besides.end())
      all.push_back(place_of(w.board, *m));
  }
  const auto i = wire::choose_loader(all, model, standing_of(model).bytes);
  return i ? std::optional(std::string(all[*i].worker)) : std::nullopt;
}

std::vector<std::string> fleet_view::models() const {
  std::vector<std::string> out;
  for (const auto& m : models_) out.push_back(m->name);
  return out;
}

// Not every worker has looked at the model's files: what one of them says of its bytes holds for all.
fleet_view::standing fleet_view::standing_of(const std::string& model) const {
  standing out;
  for (const auto& [name, w] : workers_) {
    const auto* m = loads(w, model);
    if (!m) continue;
    const auto state = state_named(m->state);
    if (!out.on_demand || rank_of(state) > rank_of(out.state)) {
      out.state = rank_of(state) == 1 ? model_state::absent : state;
      out.reason = m->reason;
    }
    out.on_demand = true;
    out.bytes = std::max(out.bytes, m->bytes);
  }
  return out;
}

bool fleet_view::standings_changed() {
  bool changed = false;
  for (const auto& m : models_) {
    auto now = standing_of(m->name);
    changed |= std::exchange(stand_[m->name], now) != now;
  }
  return changed;
}

// Of a model without a place.
void fleet_view::show_standing(known_model& k, const far_model& m) const {
  const auto s = stand_.find(k.spec.name);
  if (s == stand_.end() || !s->second.on_demand) return;
  k.on_demand = true;
  k.state = s->second.state;
  k.reason = s->second.reason;
  k.predicted.weights = s->second.bytes;
  k.sleeper = m;
}

}  // namespace weir::actors::fleet
