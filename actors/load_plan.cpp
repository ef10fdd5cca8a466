#include "actors/load_plan.h"

#include <algorithm>
#include <optional>

#include "core/cache/page.h"
#include "core/shortened.h"

namespace weir::actors {

std::vector<load_step> plan_loads(const std::vector<model_spec>& models, std::uint32_t copies,
                                  std::size_t hosts) {
  std::vector<load_step> out;
  std::vector<std::size_t> loads(hosts, 0);
  for (const auto& m : models)
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      const auto to = static_cast<std::size_t>(std::ranges::min_element(loads) - loads.begin());
      ++loads[to];
      out.push_back({m, copy, to});
    }
  return out;
}

model_spec spec_of(const load_order& o, const known_model* there) {
  model_spec out = there && o.spec.source.empty() ? there->spec : o.spec;
  if (there) out.pinned = there->spec.pinned;
  if (o.spec.share)
    out.share = o.spec.share;
  else if (there)
    out.share = there->spec.share;
  if (!o.spec.limits.none())
    out.limits = o.spec.limits;
  else if (there)
    out.limits = there->spec.limits;
  out.pages.reset();
  if (o.kv_tokens) out.pages = static_cast<std::uint32_t>(core::pages_for(*o.kv_tokens));
  return out;
}

std::vector<load_step> steps_of(const model_spec& spec, const std::vector<std::size_t>& on) {
  std::vector<load_step> out;
  for (std::uint32_t copy = 0; copy < on.size(); ++copy) out.push_back({spec, copy, on[copy]});
  return out;
}

core::result<std::vector<std::size_t>> choose_hosts(const load_order& o,
                                                    std::span<const std::unique_ptr<host>> hosts,
                                                    std::span<const known_model> known,
                                                    const std::set<std::string>& leaving, std::size_t most) {
  std::vector<std::size_t> models(hosts.size(), 0);
  for (const auto& m : known)
    if (m.state != model_state::asleep && !leaving.contains(m.spec.name))
      for (const auto i : m.hosts) ++models[i];
  std::vector<std::size_t> out;
  for (std::size_t place = 0; place < std::max<std::size_t>(1, o.devices.size()); ++place) {
    const std::string* device = o.devices.empty() ? nullptr : &o.devices[place];
    std::optional<std::size_t> best;
    bool there = !device;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (device && hosts[i]->device() != *device) continue;
      there = true;
      if (std::ranges::count(out, i) == 0 && (!best || models[i] < models[*best])) best = i;
    }
    if (!there) return core::bad_param("device", "this server has no device '{}'", core::shortened(*device));
    if (!best) return core::bad_param("device", "device '{}' is named more often than it is there", *device);
    if (models[*best] >= most)
      return core::make_error(core::errc::does_not_fit, "{} has {} models, which are the most",
                              hosts[*best]->device(), most);
    out.push_back(*best);
  }
  return out;
}

}  // namespace weir::actors
