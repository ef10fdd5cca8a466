// A demonstration: a gateway has the worker of a job kill itself, where that worker was started for it.
#include <catch2/catch.hpp>

#include "core/fleet/control_frame.h"
#include "core/fleet/subjects.h"
#include "tests/actors/fleet_town.h"

namespace weir::tests::fleet_demo_test {
namespace {

namespace wire = core::fleet;
using std::chrono::seconds;

// Two workers. Those of a demonstration die where they are told to.
struct shown_fleet : fleet_town {
  shown_fleet(std::uint64_t seed, bool demo) : fleet_town(seed) {
    for (std::size_t i = 0; i < 2; ++i) {
      fleet::worker_options o;
      if (demo)
        o.on_crash = [this, i] {
          ++killed;
          here.after({}, [this, i] { workers[i].bus->kill(); });
        };
      add_worker(std::move(o));
    }
    add_gateway();
    wait(seconds(1));
  }
  std::shared_ptr<job_stream> running(std::uint64_t seed, std::int64_t tokens = 200) {
    const auto s = send(ask("hello", tokens, seed));
    REQUIRE(here.run([&] { return s->published() >= 20; }, seconds(30)));
    return s;
  }
  fleet::gateway_side& gateway() { return *gateways.front().side; }
  std::uint64_t broken() {
    std::uint64_t all = 0;
    for (const auto& w : workers) all += w.side->counts().broken;
    return all;
  }

  unsigned killed = 0;  // workers
};

}  // namespace

TEST_CASE("in a demonstration the worker of a job dies as a reader asks, and the job goes on") {
  shown_fleet t(91, true);
  const auto s = t.running(8);
  t.gateway().kill_worker_of(s->id());
  t.finish(s);
  CHECK(t.killed == 1);
  CHECK(text_of(*s) == sim_text(8, 200));
  t.wait(seconds(1));
  CHECK(t.gateway().counts().moved == 1);
  CHECK(t.broken() == 0);
}

TEST_CASE("a worker that is in no demonstration does not die, and counts who asks for it") {
  shown_fleet t(92, false);
  const auto s = t.running(8);
  t.gateway().kill_worker_of(s->id());
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 200));
  t.wait(seconds(1));
  CHECK(t.gateway().counts().moved == 0);
  CHECK(t.broken() == 1);
}

TEST_CASE("a worker dies for a job that runs there alone") {
  shown_fleet t(93, true);
  const auto done = t.running(7, 25);
  t.finish(done);
  const auto s = t.running(8);
  t.gateway().kill_worker_of({1, 2});
  t.gateway().kill_worker_of(done->id());
  const auto stranger = t.net->join();
  for (const auto& w : t.workers) {
    const auto control = wire::subjects("main").control_of(w.side->name());
    stranger->publish(control, wire::frame_of(wire::crash{{s->id(), 1}}));  // another attempt
    stranger->publish(control, wire::frame_of(wire::crash{{{1, 2}, 0}}));
  }
  t.finish(s);
  t.wait(seconds(1));
  CHECK(t.killed == 0);
  CHECK(t.broken() == 4);
  CHECK(text_of(*s) == sim_text(8, 200));
}

}  // namespace weir::tests::fleet_demo_test
