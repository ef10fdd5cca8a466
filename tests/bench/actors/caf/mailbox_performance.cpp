#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

using message = caf::atom_constant<caf::atom("message")>;

struct received {
  std::uint64_t n = 0;
};

caf::behavior receiver(caf::stateful_actor<received>* self, std::uint64_t expected) {
  return {[=](message) {
    if (++self->state.n == expected) self->quit();
  }};
}

// Runs to its end when it is first scheduled: CAF's mailboxes have no bound, so nothing makes it wait.
void sender(caf::event_based_actor* self, const caf::actor& to, std::uint64_t n) {
  for (; n > 0; --n) self->send(to, message::value);
}

}  // namespace

void mailbox_performance(const task& t) {
  system_config config(t.threads);
  caf::actor_system system(config);
  t.watch.start();
  const auto to = system.spawn(receiver, t[0] * t[1]);
  for (std::uint64_t i = 0; i < t[0]; ++i) system.spawn(sender, to, t[1]);
  system.await_all_actors_done();
  t.watch.stop();
}

}  // namespace bench
