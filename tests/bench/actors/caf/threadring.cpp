#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

using token = caf::atom_constant<caf::atom("token")>;
using leave = caf::atom_constant<caf::atom("leave")>;
using neighbour = caf::atom_constant<caf::atom("neighbour")>;

struct place {
  caf::actor next;
};

caf::behavior member(caf::stateful_actor<place>* self, std::uint64_t members) {
  return {[=](neighbour, const caf::actor& next) { self->state.next = next; },
          [=](token, std::uint64_t left) {
            if (left > 0) {
              self->send(self->state.next, token::value, left - 1);
            } else {
              self->send(self->state.next, leave::value, members - 1);
            }
          },
          [=](leave, std::uint64_t left) {
            if (left > 0) self->send(self->state.next, leave::value, left - 1);
            self->state.next = nullptr;
            self->quit();
          }};
}

}  // namespace

void threadring(const task& t) {
  system_config config(t.threads);
  caf::actor_system system(config);
  std::vector<caf::actor> ring;
  t.watch.start();
  for (std::uint64_t i = 0; i < t[0]; ++i) ring.push_back(system.spawn(member, t[0]));
  for (std::uint64_t i = 0; i < t[0]; ++i) caf::anon_send(ring[i], neighbour::value, ring[(i + 1) % t[0]]);
  caf::anon_send(ring[0], token::value, t[1]);
  ring.clear();
  system.await_all_actors_done();
  t.watch.stop();
}

}  // namespace bench
