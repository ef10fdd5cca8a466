// worker_orders.h — what a worker of a fleet does with an order for its models: what the admin routes of a
// server do.
//
// Thread safety: any thread.
#pragma once

#include <functional>
#include <string>

#include "actors/service.h"
#include "core/fleet/order_frame.h"

namespace weir::net {

// `models_dir`: --models-dir; empty: there is none. `done` is called once, on `ex`. `s` must outlive the
// call.
void carry_out_wish(actors::service& s, const std::string& models_dir, core::fleet::model_wish wish,
                    const actors::executor& ex, std::function<void(core::fleet::wish_answer)> done);

}  // namespace weir::net
