// Which models leave for one that requests wait for, how each of them leaves, and whether that is enough.
#include <algorithm>

#include "actors/evict.h"
#include "actors/model_demand.h"
#include "core/memory/plan_text.h"

namespace weir::actors {

namespace asio = boost::asio;

bool model_demand::is_on(const entry& e, const option& o) const {
  return std::ranges::any_of(e.hosts, [&](std::size_t i) {
    return o.crowded ? std::ranges::count(o.on, i) > 0 : p_.hosts[i]->device() == o.device;
  });
}

// Models that sleep on the host have memory of a device, too.
model_demand::entries model_demand::on_the_way(const entry& e, const option& o, bool resting) {
  entries out;
  for (auto& other : known_) {
    if (&other == &e || other.spec.pinned || !is_on(other, o)) continue;
    const bool asleep = other.state == model_state::asleep && !o.crowded;
    if (asleep || (other.state == model_state::ready && (!resting || rests(other)))) out.push_back(&other);
  }
  return out;
}

model_demand::exit model_demand::exit_of(const entry& e, bool naps) const {
  if (e.state == model_state::asleep) return exit::deepen;
  return naps && best_level(e) == sleep_level::host ? exit::sleep : exit::unload;
}

core::duration model_demand::return_of(const entry& e, exit how) const {
  const auto load = e.last_load.value_or(model_list::predicted_load(*p_.list.look(), e));
  const auto wake = model_list::predicted_wake(e);
  return how == exit::sleep ? wake : how == exit::deepen ? load - std::min(load, wake) : load;
}

std::uint64_t model_demand::freed_by(const leaving& l, const std::string& device) const {
  const auto& name = l.who->spec.name;
  return l.how == exit::sleep ? p_.memory.freed_by_sleep(name, device) : p_.memory.taken_by(name, device);
}

// What a model keeps while it sleeps may be what is missing: then models that rest are unloaded.
std::optional<model_demand::exit_set> model_demand::leave_for(const option& o, const entries& may) const {
  auto set = cheapest(o, may, true);
  return set ? std::move(set) : cheapest(o, may, false);
}

std::optional<model_demand::exit_set> model_demand::cheapest(const option& o, const entries& may,
                                                             bool naps) const {
  const auto now = p_.time.now();
  std::vector<leaver> leavers;
  std::vector<leaving> how;
  for (auto* m : may) {
    how.push_back({m, exit_of(*m, naps)});
    const auto back = return_of(*m, how.back().how);
    leavers.push_back({.bytes = freed_by(how.back(), o.device),
                       .ms_to_return = static_cast<std::uint64_t>(std::max<std::int64_t>(
                           1, std::chrono::duration_cast<std::chrono::milliseconds>(back).count())),
                       .jobs_lately = m->use->asked_lately(now),
                       .last_use = last_use(*m).time_since_epoch().count()});
  }
  const auto set = actors::leave_for(std::span<const leaver>(leavers), o.lacks, o.crowded ? 1 : 0);
  if (!set) return std::nullopt;
  exit_set out;
  for (const auto i : *set) {
    out.out.push_back(how[i]);
    out.cost += leavers[i].cost();
  }
  // Those that make room on the host go first. Where it has no room for all that were to sleep, the others
  // are unloaded.
  std::ranges::stable_partition(out.out, [](const leaving& l) { return l.how == exit::deepen; });
  auto room = p_.memory.sleep_account().free();
  for (auto& l : out.out) {
    if (l.how == exit::deepen) room += l.who->asleep_bytes;
    if (l.how != exit::sleep) continue;
    const auto bytes = sleep_bytes_of(*l.who);
    const auto held = l.who->memory.asleep;  // of an earlier sleep
    if (bytes && *bytes <= room + held)
      room -= *bytes - std::min(*bytes, held);
    else
      l.how = exit::unload;
  }
  return out;
}

asio::awaitable<bool> model_demand::confirmed(self_type& self, entry& e, option& o,
                                              const std::vector<leaving>& out) {
  std::set<std::string> gone, asleep;
  std::uint64_t freed = 0;
  for (const auto& l : out) {
    (l.how == exit::sleep ? asleep : gone).insert(l.who->spec.name);
    freed += freed_by(l, o.device);
  }
  std::uint64_t more = 0;
  if (e.level == sleep_level::host) {
    const auto lacks = p_.memory.lacks_to_wake(e.memory, gone, asleep);
    if (!lacks) co_return true;
    o.device = lacks->device;
    o.why = lacks->why + ",";
    more = lacks->bytes;
  } else {
    const auto made = co_await plan(self, steps_of(e.spec, o.on), std::move(gone), std::move(asleep));
    if (made && made->fits()) co_return true;
    if (!made) co_return false;
    o.device = made->lacks->device;
    o.why = core::shortage_text(*made) + ",";
    more = made->lacks->bytes;
  }
  o.lacks = std::max(o.lacks, freed) + std::max<std::uint64_t>(1, more);
  co_return false;
}

}  // namespace weir::actors
