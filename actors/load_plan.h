// load_plan.h — what is loaded on which host: at the start, and by an order.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "actors/host.h"
#include "actors/model_list.h"
#include "actors/model_orders.h"

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

// What an order loads: its own source or, where it names none, that of `there`, the model that has its name;
// null: no model has. So it is with the weight and the
// limits.
model_spec spec_of(const load_order& o, const known_model* there);

// The loads of a model, a copy on each of these hosts.
std::vector<load_step> steps_of(const model_spec& spec, const std::vector<std::size_t>& hosts);

// The hosts on which an order's model gets its places, as indices of `hosts`: one of each device that the
// order names, or one of any. Of several hosts the one with the fewest models is taken, and the first of
// equals. Models of the names in `leaving`, and those that sleep, are not counted. `most`: models that a host
// may have. Errors: invalid_param where a device is not there, or not as often as the order names it;
// does_not_fit where a host has `most` models.
core::result<std::vector<std::size_t>> choose_hosts(const load_order& o,
                                                    std::span<const std::unique_ptr<host>> hosts,
                                                    std::span<const known_model> known,
                                                    const std::set<std::string>& leaving, std::size_t most);

}  // namespace weir::actors
