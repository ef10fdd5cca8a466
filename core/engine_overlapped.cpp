// The overlapped loop, as docs/architecture.md («Steps that overlap») describes it.
#include <algorithm>
#include <utility>

#include "core/engine_state.h"

namespace weir::core {

step_report engine::state::overlapped_step() {
  begin();
  begin_draws(true);
  if (fault) return faulted_step();
  expire();
  if (under_way && under_way->load.decode_rows == 0) return land();
  const batch& work = schedule();
  std::optional<in_flight> next = launch(work);
  if (next) plan.computed(now);
  const bool collects = under_way.has_value();
  collect();
  const bool began = next && !fault;
  if (began) {
    list_scored(work);
    list_draws(*next, work);
    under_way = std::move(next);
    report.under_way = under_way->load.prompt_rows > 0 ? step_kind::prompt : step_kind::decode;
  }
  deliver();
  // score() waits for the forward, and is therefore called after the delivery.
  if (began && score(work)) deliver();
  // The collected step may have ended a sequence whose place or pages a waiting job needs.
  return close_step(under_way.has_value() || collects);
}

step_report engine::state::land() {
  collect();
  deliver();
  return close_step(true);
}

void engine::state::collect() {
  if (!under_way) return;
  in_flight step = *std::exchange(under_way, {});
  report.rows = step.rows;
  report.sequences = step.sequences;
  step.results.assign(step.draws.size(), {});
  const time_point asked = time.now();
  const auto done = device->collect(step.results);
  const auto measured = device->device_time();
  const time_point at = time.now();
  if (!done) return fail_all(done.error());
  report.waited = at - asked;
  report.took = at - std::max(step.begun, landed);
  report.device_time = measured.value_or(report.took);
  landed = at;
  plan.observe(step.load, report.device_time, report.took);
  accept_draws(std::move(step), at);
}

void engine::state::begin_draws(bool patient) {
  if (!under_way || std::exchange(under_way->drawing, true)) return;
  list_late(*under_way, patient);
  if (auto done = device->begin_draws(under_way->draws); !done) fail_all(done.error());
}

}  // namespace weir::core
