// in_flight.h — a step that was begun on the device and whose tokens the host does not have yet.
//
// Life: launch() (engine_state.h) makes one from a batch. list_draws() lists its draws, the device begins
// them, and their results are accepted. Each draw refers to the sampler of its sequence until the device has
// begun it; engine::state::close() keeps to that.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/schedule/scheduler.h"

namespace weir::core {

struct in_flight {
  std::uint32_t rows = 0, sequences = 0;  // of the forward
  scheduler::load load;                   // rows by kind
  time_point begun{};                     // when its forward was begun
  bool drawing = false;                   // the device has begun `draws`
  std::vector<draw> draws;                // by number: sequence_step::draw_number
  std::vector<drawn> results;             // of the draws, by number

  // A step of `work` that reuses the memory of a step that is over.
  static in_flight of(const batch& work, const scheduler::load& load, time_point begun, in_flight&& over) {
    in_flight f = std::move(over);
    f.rows = static_cast<std::uint32_t>(work.tokens.size());
    f.sequences = static_cast<std::uint32_t>(work.slices.size());
    f.load = load;
    f.begun = begun;
    f.drawing = false;
    f.draws.clear();
    f.results.clear();
    return f;
  }
};

}  // namespace weir::core
