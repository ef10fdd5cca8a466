#include "actors/load_plan.h"

#include <algorithm>
#include <optional>

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

core::result<std::vector<std::size_t>> choose_hosts(std::span<const std::string> wanted,
                                                    std::span<const std::string> devices,
                                                    std::span<const std::size_t> models, std::size_t most) {
  std::vector<std::size_t> out;
  for (std::size_t place = 0; place < std::max<std::size_t>(1, wanted.size()); ++place) {
    std::optional<std::size_t> best;
    bool there = wanted.empty();
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (!wanted.empty() && devices[i] != wanted[place]) continue;
      there = true;
      if (std::ranges::count(out, i) == 0 && (!best || models[i] < models[*best])) best = i;
    }
    if (!there)
      return core::bad_param("device", "this server has no device '{}'", core::shortened(wanted[place]));
    if (!best)
      return core::bad_param("device", "device '{}' is named more often than it is there", wanted[place]);
    if (models[*best] >= most)
      return core::make_error(core::errc::does_not_fit, "{} has {} models, which are the most",
                              devices[*best], most);
    out.push_back(*best);
  }
  return out;
}

}  // namespace weir::actors
