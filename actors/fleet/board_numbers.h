// board_numbers.h — how busy an engine is: from the admission of its worker to a board, and from a board to
// the admissions of gateways.
//
// Thread safety: as admission_control.
#pragma once

#include <algorithm>

#include "actors/admission_control.h"
#include "core/fleet/fleet_board.h"

namespace weir::actors::fleet {

// The worker's side.
inline void write_numbers(const admission_control& a, core::fleet::board_model& b) {
  b.batch = a.batch();
  b.queue = a.limits().queue;
  b.jobs = a.active();
  b.prompts = a.prompts();
  b.prompt_tokens = a.prompt_tokens();
  b.places = a.seats();
  b.prompt_rate = a.prompt_tokens_per_s();
  b.rate = a.tokens_per_s();
}

// The gateway's side. `own_jobs`: of this gateway, that the worker has; its admission counts them itself.
inline void take_numbers(const core::fleet::board_model& b, std::uint32_t own_jobs, admission_control& a) {
  a.set_pace({b.places, b.prompt_rate, b.rate, 0});
  a.set_elsewhere(b.jobs - std::min(b.jobs, own_jobs), b.prompts - std::min(b.prompts, a.prompts()),
                  b.prompt_tokens - std::min(b.prompt_tokens, a.prompt_tokens()));
}

}  // namespace weir::actors::fleet
