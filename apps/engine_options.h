// engine_options.h — settings as the command line has them become the options of a service.
#pragma once

#include "actors/service.h"
#include "core/config.h"
#include "core/error.h"

namespace weir::apps {

// Checks what belongs together: a device that this build has, models that have names of their own.
core::result<actors::service_options> service_options_of(const core::engine_settings& s,
                                                         const core::queue_settings& queue);

}  // namespace weir::apps
