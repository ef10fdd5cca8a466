#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

using spread = caf::atom_constant<caf::atom("spread")>;
using actors = caf::atom_constant<caf::atom("actors")>;

caf::behavior node(caf::event_based_actor* self, caf::actor parent, std::uint64_t* total) {
  return {[=](spread, std::uint64_t depth) {
    if (depth == 1) {
      self->send(parent, actors::value, std::uint64_t(1));
      return self->quit();
    }
    for (int i = 0; i < 2; ++i) {
      const auto child = self->spawn<caf::lazy_init>(node, caf::actor_cast<caf::actor>(self), total);
      self->send(child, spread::value, depth - 1);
    }
    self->become([=](actors, std::uint64_t left) {
      self->become([=](actors, std::uint64_t right) {
        const auto n = 1 + left + right;
        if (parent) {
          self->send(parent, actors::value, n);
        } else {
          *total = n;
        }
        self->quit();
      });
    });
  }};
}

}  // namespace

void actor_creation(const task& t) {
  system_config config(t.threads);
  caf::actor_system system(config);
  std::uint64_t total = 0;
  t.watch.start();
  caf::anon_send(system.spawn<caf::lazy_init>(node, caf::actor(), &total), spread::value, t[0]);
  system.await_all_actors_done();
  t.watch.stop();
  expect(total == (std::uint64_t(1) << t[0]) - 1, "actors are missing");
}

}  // namespace bench
