#include "tests/support/server_fixture.h"

#include <catch2/catch.hpp>
#include <future>
#include <thread>

namespace weir::tests {

server_fixture::server_fixture(server_options o) : io(o.shards, seen) {
  actors::service_options s;
  s.seen = seen;
  const bool computes = !o.model_dir.empty();
  s.models.push_back({computes ? "toy" : "sim", computes ? o.model_dir : "sim:" + o.sim});
  s.owner = o.owner;
  s.owner.device = computes ? "reference" : "sim";
  s.share_prefixes = o.share_prefixes;
  s.presets = std::move(o.presets);
  service = std::make_unique<actors::service>(std::move(s), clock);
  std::promise<core::result<>> loaded;
  service->load({}, io.at(0), [&](core::result<> r) { loaded.set_value(std::move(r)); });
  REQUIRE(loaded.get_future().get().has_value());
  o.net.listen = "127.0.0.1:0";
  server = std::make_unique<net::server>(*service, io, o.net);
  const auto started = server->start();
  REQUIRE(started.has_value());
}

server_fixture::~server_fixture() { server->stop(); }

unsigned short server_fixture::port() const { return server->port(); }

void server_fixture::until(const std::function<bool()>& holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (!holds()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (std::chrono::steady_clock::now() > limit) FAIL("waited for three minutes in vain");
  }
}

std::vector<actors::job_view> server_fixture::list_jobs() {
  std::promise<std::vector<actors::job_view>> listed;
  service->list_jobs({}, io.at(0), [&](auto jobs) { listed.set_value(std::move(jobs)); });
  return listed.get_future().get();
}

void server_fixture::until_quiet() {
  until([&] {
    const auto s = service->stats();
    return s.engine.queued + s.engine.prefilling + s.engine.decoding == 0 && s.engine.pages_used == 0;
  });
}

}  // namespace weir::tests
