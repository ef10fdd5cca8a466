// on_demand.h — how models come and go for requests: the settings of the model registry beside its orders.
//
// Thread safety: plain data; any thread.
#pragma once

#include <chrono>

#include "core/clock.h"

namespace weir::actors {

struct on_demand {
  bool on = false;  // a request for a model that is known and not ready may wait for its load
  core::duration load_wait = std::chrono::seconds(120);  // most that a request waits
  core::duration stay = std::chrono::seconds(10);  // after its last job no model is taken down for another
  // A request that has waited for so long closes the way to a busy model.
  core::duration swap_wait = std::chrono::seconds(30);
  // Most that requests may lengthen the stay of their model, by keep_alive and ttl.
  core::duration longest_stay = std::chrono::seconds(300);
};

}  // namespace weir::actors
