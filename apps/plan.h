// plan.h — the plan of memory that `weir serve` makes before it loads models.
#pragma once

#include "actors/service.h"
#include "core/error.h"

namespace weir::apps {

// Plans the loads of a service, logs the plan, and tells the service what the devices have. Errors: a model
// or a device that cannot be used; does_not_fit, with the device, the line and the bytes.
core::result<> plan_before_load(actors::service_options& o);

}  // namespace weir::apps
