// engine_options.h — settings as the command line has them become the options of a service.
#pragma once

#include "actors/service.h"
#include "core/config.h"
#include "core/error.h"

namespace weir::apps {

// Checks what belongs together: a device that this build has, models that have names of their own, numbers or
// auto.
core::result<actors::service_options> service_options_of(const core::engine_settings& s, std::uint32_t queue);

// A number of bytes, or of K, M or G of them (powers of 1024). The error names the option.
core::result<std::uint64_t> bytes_of(const char* option, const std::string& text);

}  // namespace weir::apps
