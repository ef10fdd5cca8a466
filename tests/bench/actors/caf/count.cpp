#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

using increment = caf::atom_constant<caf::atom("increment")>;
using retrieve = caf::atom_constant<caf::atom("retrieve")>;

struct counted {
  std::uint64_t n = 0;
};

caf::behavior counter(caf::stateful_actor<counted>* self) {
  return {[=](increment) { ++self->state.n; },
          [=](retrieve) {
            self->quit();
            return self->state.n;
          }};
}

void produce(caf::event_based_actor* self, const caf::actor& to, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) self->send(to, increment::value);
  self->request(to, caf::infinite, retrieve::value).then([=](std::uint64_t counted) {
    expect(counted == n, "messages are missing");
  });
}

}  // namespace

void count(const task& t) {
  system_config config(t.threads);
  caf::actor_system system(config);
  t.watch.start();
  system.spawn(produce, system.spawn(counter), t[0]);
  system.await_all_actors_done();
  t.watch.stop();
}

}  // namespace bench
