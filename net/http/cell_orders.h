// cell_orders.h — the admin routes of a gateway: the models of its workers as their boards have them, and
// orders that go to a worker. The answer of the worker comes back as it is.
//
// An order names its worker by `on`. Without it the gateway chooses: for a load, workers that can, one after
// the other, until one carries it out; for any other order, the one worker that knows the model.
//
// Thread safety: pure functions, any thread, but for begin_cell_order().
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/fleet/gateway_side.h"
#include "actors/job_stream.h"
#include "core/error.h"
#include "core/fleet/order_frame.h"
#include "net/http/reply.h"
#include "net/http/router.h"
#include "net/limits.h"

namespace weir::net {

struct cell_order {
  core::fleet::model_wish wish;
  std::string on;      // the worker; empty: the gateway chooses
  std::string model;   // what the order is about; empty: of a swap
  bool loads = false;  // another worker may do it where one cannot
};
// The order of a request; `any_path`: an admin's key was sent. What the worker will refuse is not checked.
// Errors: invalid_param, not_supported.
core::result<cell_order> read_cell_order(const route_match& route, std::string_view body, bool any_path,
                                         std::size_t most_values);

// The workers that the order may go to, the best first. Error: not_found, where nobody knows the worker or
// model; invalid_param, where several workers know the model.
core::result<std::vector<std::string>> workers_for(const cell_order& o,
                                                   const std::vector<actors::fleet::seen_worker>& all);

// {"models":[{name,state,workers:[…]}],"workers":[…]}: the models by name, each with the workers that know
// it.
std::string cell_models_body(const std::vector<actors::fleet::seen_worker>& all);

reply reply_of(const core::fleet::wish_answer& a);

// Gives the order to the first worker that takes it; `done` gets the answer once, posted to `ex`. Any thread.
// REQUIRES: the options are a gateway's, and outlive the call of `done`.
void begin_cell_order(const server_options& gateway, cell_order o, actors::executor ex,
                      std::function<void(reply)> done);

}  // namespace weir::net
