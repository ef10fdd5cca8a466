// engine_options.h — makes the options of a service from the settings of the command line.
#pragma once

#include "actors/service.h"
#include "core/config.h"
#include "core/error.h"

namespace weir::apps {

// Error: the device is not in this build, or two models have the same name.
core::result<actors::service_options> service_options_of(const core::engine_settings& s,
                                                         const core::queue_settings& queue);

}  // namespace weir::apps
