#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
struct neighbours {
  std::vector<caf::actor> all;
};
}  // namespace bench

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(bench::neighbours)

namespace bench {
namespace {

using ping = caf::atom_constant<caf::atom("ping")>;
using pong = caf::atom_constant<caf::atom("pong")>;
using done = caf::atom_constant<caf::atom("done")>;

struct conversation {
  std::uint64_t pings = 0, asked = 0;
  small_random random{0};
  std::vector<caf::actor> others;
};

caf::behavior talk(caf::stateful_actor<conversation>* self, std::uint64_t id, std::uint64_t pings,
                   const caf::actor& sink) {
  self->state.pings = pings;
  self->state.asked = id;
  self->state.random = small_random(id);
  return {[=](ping, std::uint64_t from) { self->send(self->state.others[from], pong::value, id); },
          [=](pong, std::uint64_t from) {
            auto& s = self->state;
            expect(from == s.asked, "an answer from somebody else");
            if (s.pings-- == 0) return self->send(sink, done::value);
            s.asked = s.random.next() % s.others.size();
            self->send(s.others[s.asked], ping::value, id);
          },
          [=](const neighbours& n) { self->state.others = n.all; },
          [=](done) {
            self->state.others.clear();
            self->quit();
          }};
}

struct waiting {
  std::uint64_t n = 0;
  std::vector<caf::actor> all;
};

caf::behavior wait_for_all(caf::stateful_actor<waiting>* self) {
  return {[=](const neighbours& n) { self->state.all = n.all; },
          [=](done) {
            auto& s = self->state;
            if (++s.n < s.all.size()) return;
            for (const auto& a : s.all) self->send(a, done::value);
            self->quit();
          }};
}

}  // namespace

void big(const task& t) {
  system_config config(t.threads);
  caf::actor_system system(config);
  neighbours n;
  t.watch.start();
  const auto sink = system.spawn(wait_for_all);
  for (std::uint64_t i = 0; i < t[1]; ++i) n.all.push_back(system.spawn(talk, i, t[0], sink));
  const auto introduction = caf::make_message(n);
  caf::anon_send(sink, introduction);
  for (const auto& a : n.all) caf::anon_send(a, introduction);
  for (std::uint64_t i = 0; i < t[1]; ++i) caf::anon_send(n.all[i], pong::value, i);
  system.await_all_actors_done();
  t.watch.stop();
}

}  // namespace bench
