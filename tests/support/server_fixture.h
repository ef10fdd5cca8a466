// server_fixture.h — a whole server on a loopback port for tests: over the simulated device, or over a model.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/service.h"
#include "net/server.h"
#include "tests/support/sim_text.h"

namespace weir::tests {

// A server that waits for a client that does not read, however slow the machine is.
inline net::server_options patient() {
  net::server_options o;
  o.limits.write_time = std::chrono::minutes(10);
  return o;
}

struct server_options {
  std::string sim = "rate=5000,prefill=100000000";
  std::string model_dir;  // a model that computes, on the reference backend, instead of the simulated one
  actors::owner_options owner;
  net::server_options net = patient();
  std::size_t shards = 2;
  bool share_prefixes = false;
  actors::sampling_presets presets;
};

// Options with which a long job takes long: for tests that end the job.
inline server_options slow() {
  server_options o;
  o.sim = "rate=100,prefill=100000000";
  return o;
}

struct server_fixture {
  explicit server_fixture(server_options o = {});
  ~server_fixture();

  unsigned short port() const;
  std::string origin() const { return "http://127.0.0.1:" + std::to_string(port()); }

  // Waits until `holds` returns true. Fails a test that would wait for more than a minute.
  static void until(const std::function<bool()>& holds);

  // The jobs of all users as /v1/jobs lists them, the newest first. A job's end reaches the list a message
  // later than the engine.
  std::vector<actors::job_view> list_jobs();

  // Waits until nothing is left in the engine.
  void until_quiet();

  actors::system_time clock;
  const std::shared_ptr<core::incidents> seen = std::make_shared<core::incidents>([](std::string_view) {});
  net::shards io;  // outlives the service, whose streams post to it
  std::unique_ptr<actors::service> service;
  std::unique_ptr<net::server> server;
};

}  // namespace weir::tests
