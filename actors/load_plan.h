// load_plan.h — which host loads which copy of which model, in what order.
//
// Thread safety: a pure function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/host.h"

namespace weir::actors {

// One copy of a model that is to be loaded.
struct load_step {
  model_spec spec;
  std::uint32_t copy = 0;  // 0: the first one of its model
  std::size_t host = 0;
};

// Each copy goes to the host with the fewest loads so far, the earlier one of several. So the copies of a
// model are on different hosts. REQUIRES: copies <= hosts.
std::vector<load_step> plan_loads(const std::vector<model_spec>& models, std::uint32_t copies,
                                  std::size_t hosts);

}  // namespace weir::actors
