// The overlapped loop: step N + 1 is begun while the device runs step N, and N's tokens are judged and
// delivered while it runs N + 1. The plain loop (engine.cpp) is the definition; both give every job the same
// tokens.
//
//   host    | draws N, begin N+1 | wait for N's tokens, judge, ask for N+1's, deliver | mail | draws N+1,
//   begin N+2 | wait … device  | forward N, draws N                            | forward N+1 , draws N+1 |
//   forward N+2 …
//
// A row of N + 1 whose token N still has to draw takes it on the device. What host work needs the token for
// (penalties, bans, masks) is done before N + 1's draws are begun, while its forward runs. They are begun in
// the next step, so that no token waits for its way out while a device that has much to do takes no more
// orders.
//
// The device works off in order what it is given. Pages may therefore go from one sequence to another while
// rows of the first are under way: whatever the second puts there is put there later. And whoever was
// cancelled, ran out of time, was preempted or ended by its last token leaves at most one row that was
// computed for nothing: its draw finds nobody who awaits it.
#include <algorithm>
#include <utility>

#include "core/engine_state.h"

namespace weir::core {

step_report engine::state::overlapped_step() {
  begin();
  begin_draws();
  expire();
  if (under_way.up && under_way.load.decode_rows == 0) return land();
  grow();
  admit();
  const batch& work = schedule();
  start(work);
  collect();
  await_draws(work);
  deliver();
  return close_step(under_way.up);
}

// Prompts alone make long steps, beside which the host takes no time: nothing is begun behind them, so that
// who comes or goes meanwhile need not wait for two.
step_report engine::state::land() {
  collect();
  under_way = {};
  deliver();
  return close_step(true);
}

void engine::state::start(const batch& work) {
  next = {};
  if (work.empty()) return;
  next = {.up = true,
          .rows = static_cast<std::uint32_t>(work.tokens.size()),
          .sequences = static_cast<std::uint32_t>(work.slices.size()),
          .load = plan.last_load(),
          .begun = time.now()};
  if (auto done = device->forward(work); !done) {
    report.rows = next.rows;
    return fail_all(done.error());
  }
  settle_rows(now);
}

void engine::state::collect() {
  if (!under_way.up) return;
  report.rows = under_way.rows;
  report.sequences = under_way.sequences;
  results.assign(draws.size(), {});
  const time_point asked = time.now();
  const auto done = device->collect(results);
  const time_point at = time.now();
  if (!done) return fail_all(done.error());
  report.waited = at - asked;
  report.took = at - std::max(under_way.begun, landed);
  landed = at;
  plan.observe(under_way.load, report.took);
  judge(at);
}

void engine::state::await_draws(const batch& work) {
  under_way = next;
  draws_wait = under_way.up;
  if (draws_wait) ask(work);
}

// REQUIRES: since ask() no sequence was let go.
void engine::state::begin_draws() {
  if (!std::exchange(draws_wait, false) || fault) return;
  if (auto done = device->begin_draws(draws); !done) fail_all(done.error());
}

}  // namespace weir::core
