// fleet_orders.h — what `weir fleet` asks of one worker, over the bus.
//
// Thread safety: one thread, which the calls block.
#pragma once

#include <optional>
#include <string>

#include "actors/bus.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/join_config.h"

namespace weir::apps {

// What the worker answers to a frame under its control subject. Errors: not_found, where it is not there;
// unavailable, where no server or no worker answers.
core::result<std::string> ask_worker(actors::bus& bus, const core::join_settings& s,
                                     const std::string& worker, const std::string& frame,
                                     core::duration patience);
core::error no_server(const core::join_settings& s);

// An order for a model of a worker: load, unload, sleep or wake.
struct fleet_order {
  std::string worker, action, model;
  std::string source, level;      // empty: none is named
  std::optional<double> drain_s;  // of unload and sleep
};
// Gives the order and prints what the worker's admin route says. Returns the exit code.
int give_fleet_order(actors::bus& bus, const core::join_settings& s, const fleet_order& o);

}  // namespace weir::apps
