// nats_bus.h — a bus (actors/bus.h) over servers of NATS.
//
// Besides the contract of actors/bus.h:
//   - Messages that wait to be sent have at most 64 MiB, and further ones are refused by publish().
//   - Messages that wait to be handled have at most 64 MiB a subscription, and further ones are lost.
//   - A link that is down is tried again for ever, after pauses from 50 ms to 2 s. Where the servers take
//     the process's key no longer, the link is closed.
//   - An empty answer of the server («nobody has a subscription») reaches ask() alone.
//   - The destructor sends what waits, for a second at most. When the destructor returns, nothing more is
//     posted: questions that still wait for an answer are never done.
//
// Thread safety: as actors/bus.h. `trouble` is called on any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "actors/bus.h"
#include "core/error.h"
#include "core/join_config.h"

namespace weir::net {

// Whether this build can join a fleet.
bool has_nats() noexcept;

struct nats_hooks {
  std::string name = "weir";                      // of the connection, in the servers' lists
  std::function<void(std::string_view)> trouble;  // a line for the log: what went wrong, or is well again
};

// Connects, which takes some seconds at most. Where no server answers, the bus is made all the same, with its
// link down. Errors: invalid_param names a wrong or missing option; unavailable, where a server refuses the
// key, the certificate or a connection without one; not_supported, where the build has no NATS.
core::result<std::unique_ptr<actors::bus>> join_nats(const core::join_settings& settings, nats_hooks hooks);

}  // namespace weir::net
