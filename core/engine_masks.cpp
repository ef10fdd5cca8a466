// The draws of jobs that have constraints: their masks, forced tokens, and draws whose masks are late.
#include <algorithm>
#include <thread>

#include "core/engine_state.h"

namespace weir::core {

using grammar::job_mask;

void engine::state::make_mask(sequence& s) {
  if (helpers)
    s.mask().set_posted(helpers->post(s.shared_mask()));
  else
    s.mask().work();
}

void engine::state::discard_mask(sequence& s) noexcept {
  if (!s.shared_mask() || !helpers) return;
  const bool with_helpers = !s.mask().ready() && !s.mask().needs_helper();
  auto mask = s.take_mask();
  // With a second reference in their queue, the helpers would still make the mask.
  if (!with_helpers) helpers->discard(std::move(mask));
}

bool engine::state::follow(sequence& s, token_id id, time_point at) {
  if (!s.mask().follow(id)) make_mask(s);
  return !s.mask().ready() || goes_on(s, at);
}

bool engine::state::goes_on(sequence& s, time_point at) {
  if (s.output().size() == s.max_output()) {  // reason_of() did not know why the sequence ends
    finish(s, s.mask().whole() ? finish_reason::stop : finish_reason::length);
    return false;
  }
  if (!add_forced(s, at)) return false;
  switch (s.mask().at()) {
    case job_mask::place::open: return true;
    case job_mask::place::over:
      finish(s, finish_reason::stop);
      break;
    case job_mask::place::failed:
      close(s, finish_reason::error, s.mask().fault());
      break;
  }
  return false;
}

bool engine::state::add_forced(sequence& s, time_point at) {
  while (const auto id = s.mask().forced()) {
    if (s.chooser().refuses(*id)) {
      finish(s, finish_reason::banned);
      return false;
    }
    ++report.tokens;
    ++totals.forced_tokens;
    measure(s, at);
    switch (s.accept({*id, at}, text)) {
      case sequence::accepted::goes_on:
        break;
      case sequence::accepted::banned:
        go_back(s);
        return false;
      case sequence::accepted::last:
        finish(s, *reason_of(s, *id));  // it is known of a forced token
        return false;
    }
    if (s.is_full()) shift(s);
    s.mask().take_forced();
  }
  return true;
}

std::optional<finish_reason> engine::state::reason_of(const sequence& s, token_id id) const {
  if (s.how().reason != finish_reason::length) return s.how().reason;
  const auto whole = s.mask().whole_behind(id);
  if (!whole) return std::nullopt;
  return *whole ? finish_reason::stop : finish_reason::length;
}

void engine::state::list_late(in_flight& step, bool patient) {
  if (late.empty()) return;
  const auto waiting = [&](const late_draw& l) {
    const auto found = known.find(l.id);
    const bool there = found != known.end() && found->second->phase() == sequence_phase::running;
    return there && found->second->mask_late() ? found->second : nullptr;
  };
  const auto unready = [&](const late_draw& l) {
    const sequence* s = waiting(l);
    return s && !s->mask().ready();
  };
  const auto posted = [&](const late_draw& l) {
    const sequence* s = waiting(l);
    return s && !s->mask().needs_helper();
  };
  while (patient && std::ranges::any_of(late, unready) && device->computing()) std::this_thread::yield();
  if (patient && step.draws.empty())
    if (const auto first = std::ranges::find_if(late, posted); first != late.end())
      helpers->finish(waiting(*first)->mask());
  for (const late_draw& l : late) {
    sequence* s = waiting(l);
    if (!s) continue;
    if (!s->mask().ready()) {
      ++totals.late_masks;
      continue;
    }
    const std::uint32_t length = s->length();
    if (!goes_on(*s, time.now())) {
      if (s->ended()) finishing.push_back(plan.take(*s));  // schedule() may be called before deliver()
      continue;
    }
    s->set_mask_late(false);
    if (s->length() == length && s->pages.size() > 0) list_draw(step, *s, l.logits_row);
  }
  late.clear();
}

}  // namespace weir::core
