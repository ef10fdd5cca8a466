#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

using message = caf::atom_constant<caf::atom("message")>;

struct received {
  std::uint64_t n = 0;
};

caf::behavior work(caf::stateful_actor<received>* self, std::uint64_t expected) {
  return {[=](message) {
    expect(compute(37.2) > 0, "unrealistic");
    if (++self->state.n == expected) self->quit();
  }};
}

void give(caf::event_based_actor* self, const std::vector<caf::actor>& to, std::uint64_t messages) {
  for (; messages > 0; --messages) {
    for (const auto& a : to) self->send(a, message::value);
  }
}

}  // namespace

void fjthrput(const task& t) {
  system_config config(t.threads);
  caf::actor_system system(config);
  std::vector<caf::actor> to;
  t.watch.start();
  for (std::uint64_t i = 0; i < t[1]; ++i) to.push_back(system.spawn(work, t[0]));
  system.spawn(give, to, t[0]);
  system.await_all_actors_done();
  t.watch.stop();
}

}  // namespace bench
