// server_fixture.h — a whole server on a loopback port over the simulated device, for tests.
#pragma once

#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "actors/service.h"
#include "net/server.h"
#include "tests/support/sim_text.h"

namespace weir::tests {

struct server_options {
  std::string sim = "rate=5000,prefill=100000000";
  actors::owner_options owner;
  net::server_options net;
  std::size_t shards = 2;
  bool share_prefixes = false;
};

// Where a long job takes its time: for tests that end it.
inline server_options slow() {
  server_options o;
  o.sim = "rate=100,prefill=100000000";
  return o;
}

struct server_fixture {
  explicit server_fixture(server_options o = {}) : io(o.shards, seen) {
    actors::service_options s;
    s.seen = seen;
    s.models.push_back({"sim", "sim:" + o.sim, false});
    s.owner = o.owner;
    s.owner.device = "sim";
    s.share_prefixes = o.share_prefixes;
    service = std::make_unique<actors::service>(std::move(s), clock);
    std::promise<core::result<>> loaded;
    service->load({}, io.at(0), [&](core::result<> r) { loaded.set_value(std::move(r)); });
    REQUIRE(loaded.get_future().get().has_value());
    o.net.listen = "127.0.0.1:0";
    server = std::make_unique<net::server>(*service, io, o.net);
    const auto started = server->start();
    REQUIRE(started.has_value());
  }

  ~server_fixture() { server->stop(); }

  unsigned short port() const { return server->port(); }
  std::string origin() const { return "http://127.0.0.1:" + std::to_string(port()); }

  // Fails a test that would wait for ever.
  static void until(const std::function<bool()>& holds) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!holds()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (std::chrono::steady_clock::now() > limit) FAIL("waited for a minute in vain");
    }
  }

  // As /v1/jobs has them, whosever they are: the newest first. It hears of an end a message later than the engine.
  std::vector<actors::job_view> list_jobs() {
    std::promise<std::vector<actors::job_view>> listed;
    service->list_jobs({}, io.at(0), [&](auto jobs) { listed.set_value(std::move(jobs)); });
    return listed.get_future().get();
  }

  // Nothing is left in the engine.
  void until_quiet() {
    until([&] {
      const auto s = service->stats();
      return s.jobs.queued + s.jobs.prefilling + s.jobs.decoding == 0 && s.pages.used == 0;
    });
  }

  actors::system_time clock;
  const std::shared_ptr<core::incidents> seen = std::make_shared<core::incidents>([](std::string_view) {});
  net::shards io;  // outlives the service, whose streams post to it
  std::unique_ptr<actors::service> service;
  std::unique_ptr<net::server> server;
};

}  // namespace weir::tests
