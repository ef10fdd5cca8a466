// In place of nats_bus.cpp, where a build has no client library of NATS.
#include "net/bus/nats_bus.h"

namespace weir::net {

bool has_nats() noexcept { return false; }

core::result<std::unique_ptr<actors::bus>> join_nats(const core::join_settings&, nats_hooks) {
  return core::make_error(core::errc::not_supported,
                          "--join: this build has no NATS: libnats-dev was missing");
}

}  // namespace weir::net
