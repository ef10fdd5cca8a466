#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

using token = caf::atom_constant<caf::atom("token")>;
using done = caf::atom_constant<caf::atom("done")>;
using problem = caf::atom_constant<caf::atom("problem")>;
using factors = std::vector<std::uint64_t>;

caf::behavior link(caf::event_based_actor* self, const caf::actor& next) {
  return {[=](token, std::uint64_t value) {
    self->send(next, token::value, value);
    if (value == 0) self->quit();
  }};
}

caf::behavior factoriser(caf::event_based_actor* self, const caf::actor& to) {
  return {[=](problem, std::uint64_t n) { self->send(to, factorise(n)); }, [=](done) { self->quit(); }};
}

struct ring {
  caf::actor next, worker;
  std::uint64_t repetition = 0;
};

caf::behavior master(caf::stateful_actor<ring>* self, const caf::actor& supervisor, std::uint64_t ring_size,
                     std::uint64_t first_value, std::uint64_t repetitions, bool factorising) {
  auto new_ring = [=] {
    auto& s = self->state;
    if (s.worker) self->send(s.worker, problem::value, factor_1 * factor_2);
    s.next = self;
    for (std::uint64_t i = 1; i < ring_size; ++i) s.next = self->spawn<caf::lazy_init>(link, s.next);
    self->send(s.next, token::value, first_value);
  };
  if (factorising) self->state.worker = self->spawn<caf::detached>(factoriser, supervisor);
  new_ring();
  return {[=](token, std::uint64_t value) {
    auto& s = self->state;
    if (value > 0) return self->send(s.next, token::value, value - 1);
    if (++s.repetition < repetitions) return new_ring();
    if (s.worker) self->send(s.worker, done::value);
    self->send(supervisor, done::value);
    self->quit();
  }};
}

struct reported {
  std::uint64_t n = 0;
};

caf::behavior supervise(caf::stateful_actor<reported>* self, std::uint64_t reports) {
  auto another = [=] {
    if (++self->state.n == reports) self->quit();
  };
  return {[=](const factors& found) {
            expect(found == factors{factor_1, factor_2}, "wrong factors");
            another();
          },
          [=](done) { another(); }};
}

}  // namespace

void mixed_case(const task& t) {
  const bool factorising = t[4] != 0;
  system_config config(t.threads);
  config.add_message_type<factors>("factors");
  caf::actor_system system(config);
  t.watch.start();
  const auto reports = t[0] + (factorising ? t[0] * t[3] : 0);
  const auto supervisor = system.spawn(supervise, reports);
  for (std::uint64_t i = 0; i < t[0]; ++i) system.spawn(master, supervisor, t[1], t[2], t[3], factorising);
  system.await_all_actors_done();
  t.watch.stop();
}

}  // namespace bench
