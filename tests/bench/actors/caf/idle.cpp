#include <atomic>
#include <thread>

#include "tests/bench/actors/caf/system.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

using message = caf::atom_constant<caf::atom("message")>;

caf::behavior wait(caf::event_based_actor* self, std::atomic<std::uint64_t>* begun) {
  ++*begun;
  return {[=](message) { self->quit(); }};
}

}  // namespace

void idle(const task& t) {
  system_config config(t.threads);
  caf::actor_system system(config);
  std::vector<caf::actor> all;
  all.reserve(t[0]);
  std::atomic<std::uint64_t> begun = 0;
  t.watch.start();
  for (std::uint64_t i = 0; i < t[0]; ++i) all.push_back(system.spawn(wait, &begun));
  while (begun < t[0]) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  t.weigh();
  for (const auto& a : all) caf::anon_send_exit(a, caf::exit_reason::user_shutdown);
  all.clear();
  system.await_all_actors_done();
  t.watch.stop();
}

}  // namespace bench
