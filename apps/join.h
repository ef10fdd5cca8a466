// join.h — how the commands of a fleet come to their bus.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "actors/bus.h"
#include "core/error.h"
#include "core/join_config.h"

namespace weir::apps {

// The bus of --join, whose troubles are logged. `role`: of this process, for lists of the servers. Errors:
// those of net::join_nats(), and a --join that is missing.
core::result<std::unique_ptr<actors::bus>> join(const core::join_settings& s, const std::string& role);

// Whether all servers of --join are on this machine, as --demo demands. Error: --demo is refused by name.
core::result<> check_demo(const core::join_settings& s);

}  // namespace weir::apps
