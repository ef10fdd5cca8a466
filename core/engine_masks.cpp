// The draws of jobs that have constraints: their masks, and those that come too late for a step.
#include <algorithm>
#include <thread>

#include "core/engine_state.h"

namespace weir::core {

using grammar::job_mask;

void engine::state::make_mask(sequence& s) {
  if (!helpers || !helpers->post(s.fit)) s.fit->work();
}

bool engine::state::follow(sequence& s, token_id id) {
  if (!s.fit->follow(id)) make_mask(s);
  return !s.fit->ready() || goes_on(s);
}

bool engine::state::goes_on(sequence& s) {
  switch (s.fit->at()) {
    case job_mask::place::open: return true;
    case job_mask::place::over:
      close(s, finish_reason::stop);
      bad_endings = 0;
      break;
    case job_mask::place::failed: close(s, finish_reason::error, s.fit->fault()); break;
  }
  return false;
}

finish_reason engine::state::reason_of(sequence& s, token_id id) {
  if (s.how.reason != finish_reason::length) return s.how.reason;
  return s.fit->whole_behind(id) ? finish_reason::stop : finish_reason::length;
}

void engine::state::list_late(in_flight& step, bool patient) {
  if (late.empty()) return;
  const auto waiting = [&](const late_draw& l) {
    const auto found = known.find(l.id);
    const bool there = found != known.end() && found->second->phase == sequence_phase::running;
    return there && found->second->sits_out() ? found->second : nullptr;
  };
  const auto unready = [&](const late_draw& l) {
    const sequence* s = waiting(l);
    return s && !s->fit->ready();
  };
  while (patient && std::ranges::any_of(late, unready) && device->computing()) std::this_thread::yield();
  if (patient && step.draws.empty())
    if (const auto first = std::ranges::find_if(late, waiting); first != late.end())
      helpers->finish(*waiting(*first)->fit);
  for (const late_draw& l : late) {
    sequence* s = waiting(l);
    if (!s) continue;
    if (!s->fit->ready()) {
      ++totals.late_masks;
      continue;
    }
    if (s->fit->at() != job_mask::place::open) continue;  // list_draws() ends it: a plan may come before that
    s->sit_out(false);
    list_draw(step, *s, l.logits_row);
  }
  late.clear();
}

}  // namespace weir::core
