#include "actors/load_plan.h"

#include <algorithm>

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

}  // namespace weir::actors
