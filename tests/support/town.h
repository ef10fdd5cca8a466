// town.h — a world with a service and its clients: each client starts at its time, the service drains from a
// given time on, and in the end nothing may be left.
//
// Thread safety: none; everything on the thread that calls live().
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/life.h"

namespace weir::tests {

struct town {
  // `found` sets the options of the service. It may use the world's random numbers: the world exists already.
  using founder = std::function<void(world&, actors::service_options&)>;
  town(std::uint64_t seed, core::duration tick_every, const founder& found)
      : here(seed), tick_every_(tick_every) {
    actors::service_options o;
    o.owner.device = "sim";
    o.owner.audit = true;
    found(here, o);
    service = here.make_service(std::move(o));
    state = std::make_shared<net::server_state>(*service, net::server_options{});
    elsewhere = std::make_shared<net::hub>(state, here.get_executor());
    hub = std::make_shared<net::hub>(state, here.get_executor());
    state->hubs = {elsewhere, hub};
    tick();
  }

  // Adds a client that starts at time `at` and submits the request that `asked` then returns.
  void expect(core::duration at, std::function<actors::request()> asked, const habits& h = {}) {
    lives.push_back(std::make_shared<life>(here, hub));
    here.after(at, [asked = std::move(asked), h, l = lives.back()] { l->begin(asked(), h); });
  }

  // Runs the world until the service has drained. It begins to drain at time `until`.
  void live(core::duration until) {
    here.after(until, [this] { service->drain(here.get_executor(), [this] { closed_ = true; }); });
    REQUIRE(here.run([&] { return closed_; }));
    // The last clients still receive frames: some read slowly or acknowledge late.
    here.run([&] { return std::ranges::all_of(lives, &life::over); }, std::chrono::hours(1));
    here.run([] { return false; }, std::chrono::seconds(2));
  }

  // Checks that each client was served as promised and that nothing is left. Counts how the jobs ended.
  void judge(std::map<std::string, int>& endings) const {
    for (const auto& l : lives) {
      REQUIRE(l->over());
      l->judge();
      ++endings[l->ending()];
    }
    const auto stats = service->stats();
    REQUIRE(stats.engine.pages_used == 0);
    REQUIRE(stats.engine.pages_cached + stats.engine.pages_free == stats.engine.pages_total);
    REQUIRE(stats.engine.queued + stats.engine.prefilling + stats.engine.decoding == 0);
    REQUIRE(service->ready().reason == "shutting down");  // and not a broken invariant of the engine
  }

  world here;
  std::unique_ptr<actors::service> service;
  std::shared_ptr<net::server_state> state;
  std::shared_ptr<net::hub> hub;
  std::shared_ptr<net::hub> elsewhere;  // a shard without jobs, which is asked first for a job to resume
  std::vector<std::shared_ptr<life>> lives;

 private:
  void tick() {
    hub->tell(net::hub::event::tick);
    if (!closed_) here.after(tick_every_, [this] { tick(); });
  }

  core::duration tick_every_;
  bool closed_ = false;
};

}  // namespace weir::tests
