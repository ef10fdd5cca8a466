#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

using again = caf::atom_constant<caf::atom("again")>;
using to_ping = caf::atom_constant<caf::atom("ping")>;
using to_pong = caf::atom_constant<caf::atom("pong")>;
using leave = caf::atom_constant<caf::atom("leave")>;

struct left {
  std::uint64_t pings = 0;
};

caf::behavior ping(caf::stateful_actor<left>* self, const caf::actor& pong, std::uint64_t pings) {
  self->state.pings = pings;
  return {[=](again) { self->send(pong, to_pong::value, caf::actor_cast<caf::actor>(self)); },
          [=](to_ping, const caf::actor&) {
            if (--self->state.pings > 0) return self->send(self, again::value);
            self->send(pong, leave::value);
            self->quit();
          }};
}

caf::behavior pong(caf::event_based_actor* self) {
  return {[=](to_pong, const caf::actor& from) {
            self->send(from, to_ping::value, caf::actor_cast<caf::actor>(self));
          },
          [=](leave) { self->quit(); }};
}

}  // namespace

void pingpong(const task& t) {
  system_config config(t.threads);
  caf::actor_system system(config);
  t.watch.start();
  const auto other = system.spawn(pong);
  caf::anon_send(system.spawn(ping, other, t[0]), again::value);
  system.await_all_actors_done();
  t.watch.stop();
}

}  // namespace bench
