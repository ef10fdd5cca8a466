// serving.h — runs a server until a signal ends it: `weir serve` and `weir gateway`.
//
// Thread safety: one thread, which the call blocks.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "actors/bus.h"
#include "actors/fleet/gateway_side.h"
#include "actors/fleet/worker_side.h"
#include "actors/service.h"
#include "core/config.h"
#include "core/error.h"
#include "net/access/key_file.h"
#include "net/server.h"

namespace weir::apps {

// What a server of clients needs of the settings: keys, origins, a secret, presets. Warns of what is open to
// anyone.
struct server_parts {
  net::key_file key_source;
  net::server_options options;
};
core::result<server_parts> server_parts_of(const core::server_settings& s);

// Sets what a service has of the server's settings, and where its incidents are logged. Error: the presets.
core::result<> set_server_settings(actors::service_options& o, const core::server_settings& s);

// The server's part in a fleet.
struct fleet_part {
  std::unique_ptr<actors::bus> bus;  // never null
  std::vector<actors::model_spec> models;  // of workers, where the service loads none; else empty
  actors::fleet::gateway_options options;
  // Set where the service loads models: these run jobs of other gateways, and those of workers run its own.
  std::optional<actors::fleet::worker_options> worker;
  bool demo = false;  // a reader may kill the worker of an answer
  bool fetch = false;  // models of workers that are not among `models` come from these
};

// Listens, loads the models, prints that it is ready, serves until a signal, drains, stops. Returns the exit
// code.
int serve_until_signal(const core::server_settings& s, actors::service_options service, server_parts parts,
                       std::optional<fleet_part> fleet = {});

// Prints the error's message to standard error. Returns its exit code.
int fail(const core::error& e);

}  // namespace weir::apps
