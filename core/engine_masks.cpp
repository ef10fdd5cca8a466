// The draws of jobs that have constraints: their masks, forced tokens, and draws whose masks are late.
#include <algorithm>
#include <thread>

#include "core/engine_state.h"

namespace weir::core {

using grammar::job_mask;

void engine::state::make_mask(sequence& s) {
  if (helpers)
    s.fit->set_posted(helpers->post(s.fit));
  else
    s.fit->work();
}

void engine::state::discard_mask(sequence& s) noexcept {
  if (!s.fit || !helpers) return;
  s.asked.constraint.reset();
  const bool with_helpers = !s.fit->ready() && !s.fit->needs_helper();
  if (with_helpers)
    s.fit.reset();  // with a second reference in their queue, the helpers would still make the mask
  else
    helpers->discard(std::move(s.fit));
}

bool engine::state::follow(sequence& s, token_id id, time_point at) {
  if (!s.fit->follow(id)) make_mask(s);
  return !s.fit->ready() || goes_on(s, at);
}

bool engine::state::goes_on(sequence& s, time_point at) {
  if (s.output.size() == s.max_output) {  // reason_of() did not know why the sequence ends
    close(s, s.fit->whole() ? finish_reason::stop : finish_reason::length);
    bad_endings = 0;
    return false;
  }
  if (!add_forced(s, at)) {
    close(s, s.how.reason);
    bad_endings = 0;
    return false;
  }
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

bool engine::state::add_forced(sequence& s, time_point at) {
  while (const auto id = s.fit->forced()) {
    ++report.tokens;
    ++totals.forced_tokens;
    measure(s, at);
    if (!s.accept({*id, at}, text)) {
      s.how.reason = *reason_of(s, *id);  // never nullopt for a forced token
      return false;
    }
    s.fit->take_forced();
  }
  return true;
}

std::optional<finish_reason> engine::state::reason_of(const sequence& s, token_id id) const {
  if (s.how.reason != finish_reason::length) return s.how.reason;
  const auto whole = s.fit->whole_behind(id);
  if (!whole) return std::nullopt;
  return *whole ? finish_reason::stop : finish_reason::length;
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
  const auto posted = [&](const late_draw& l) {
    const sequence* s = waiting(l);
    return s && !s->fit->needs_helper();
  };
  while (patient && std::ranges::any_of(late, unready) && device->computing()) std::this_thread::yield();
  if (patient && step.draws.empty())
    if (const auto first = std::ranges::find_if(late, posted); first != late.end())
      helpers->finish(*waiting(*first)->fit);
  for (const late_draw& l : late) {
    sequence* s = waiting(l);
    if (!s) continue;
    if (!s->fit->ready()) {
      ++totals.late_masks;
      continue;
    }
    const std::uint32_t length = s->length();
    if (!goes_on(*s, time.now())) {
      finishing.push_back(plan.take(*s));  // schedule() may be called before deliver()
      continue;
    }
    s->sit_out(false);
    if (s->length() == length) list_draw(step, *s, l.logits_row);
  }
  late.clear();
}

}  // namespace weir::core
