// load_plan.h — which host loads which copy of which model, in what order.
//
// Thread safety: a pure function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

// The hosts for the places of one model: of each device in `wanted`, or, where that is empty, one of any. Of
// several the one with the fewest models, the earlier one of equals. `devices`: of each host. `models`: how
// many each has, of at most `most`. Errors: invalid_param for a device that is not there so often;
// does_not_fit.
core::result<std::vector<std::size_t>> choose_hosts(std::span<const std::string> wanted,
                                                    std::span<const std::string> devices,
                                                    std::span<const std::size_t> models, std::size_t most);

}  // namespace weir::actors
