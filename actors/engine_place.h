// engine_place.h — what an owner keeps of one of its engines.
//
// Thread safety: the owner's thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "actors/board.h"
#include "actors/device_meter.h"
#include "actors/host.h"
#include "actors/model_place.h"
#include "actors/pace_meter.h"
#include "core/engine.h"
#include "core/schedule/shares.h"

namespace weir::actors {

// An engine, and what has to outlive it: while the device is down, `engine` is null and the rest stays.
struct engine_place {
  std::unique_ptr<core::engine> engine;  // null: the device is down
  core::time_point due{};  // nothing to do before then, unless a message comes
  bool rests = false;  // after its latest step no job ran or waited: jobs that it had were paused
  bool threw = false;  // a step of the engine threw: nobody knows its state
  model_spec spec;     // what it was made from, and is made from again
  std::shared_ptr<const model_place> served;  // never null
  std::uint32_t max_batch = 1;                // sequences that run at once
  pace_meter pace;
  core::share_account share;  // of the device's time
  device_meter used;
  std::shared_ptr<const std::vector<std::uint64_t>> landmarks;  // as engine_picture has them
  std::uint64_t landmark_changes = 0;                           // of the engine, when they were listed
  core::engine_totals past_totals;  // of the engines before this one
  core::engine_measures past_measures;

  // Destroys the engine, and keeps what it counted.
  void close() {
    if (!engine) return;
    const engine_picture last = look();
    past_totals = last.counts;
    past_measures = last.measures;
    engine.reset();
    threw = false;
    landmarks.reset();
    landmark_changes = 0;
  }

  // Lists the landmarks anew where they have changed.
  void list_landmarks() {
    if (!engine || engine->landmark_changes() == landmark_changes) return;
    auto names = std::make_shared<std::vector<std::uint64_t>>();
    names->reserve(engine->landmarks().size());
    for (const auto& l : engine->landmarks()) names->push_back(l.name);
    landmark_changes = engine->landmark_changes();
    landmarks = std::move(names);
  }

  // Whether it has something to do, now or later. An engine whose jobs are all paused has none.
  bool works(core::time_point now) const noexcept {
    return engine && !engine->idle() && (!rests || due <= now);
  }

  engine_picture look() const {
    engine_picture p;
    p.engine = served->engine;
    p.share = share.weight();
    static_cast<core::engine_totals&>(p.counts) = past_totals;
    p.measures = past_measures;
    p.landmarks = landmarks;
    if (!engine) return p;
    p.counts += engine->counts();
    p.measures += engine->measures();
    p.bad_endings = engine->bad_endings();
    return p;
  }

  // If jobs wait although the batch is not full, they lack pages, so there are only as many places as
  // running jobs.
  void note_pace(core::time_point now, const core::step_report& r) {
    pace.add(now, r);
    const auto places = r.waiting > 0 ? std::max(1u, r.running) : max_batch;
    served->admission->set_pace({places, pace.prompt_tokens_per_s(), pace.tokens_per_s(), r.returning});
  }
};

}  // namespace weir::actors
