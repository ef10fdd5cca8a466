// messages.h — the messages to a gpu_owner.
//
// Each has a constructor: g++ 12 destroys an aggregate temporary inside a co_await expression twice.
#pragma once

#include <memory>
#include <utility>
#include <variant>

#include "actors/host.h"
#include "actors/loader.h"
#include "actors/runtime/ref.h"
#include "core/error.h"
#include "core/job.h"

namespace weir::actors {

// `stream` becomes the job's sink when the owner takes the job.
struct submit_job {
  core::job job;
  job_stream::owner_end stream;
  engine_id engine;
  submit_job(core::job j, job_stream::owner_end s, engine_id e)
      : job(std::move(j)), stream(std::move(s)), engine(e) {}
};

// Ends a job with `why`; no effect if the engine does not know it.
struct cancel_job {
  core::job_id id;
  engine_id engine;
  core::finish_reason why;
  cancel_job(core::job_id i, engine_id e, core::finish_reason w) : id(i), engine(e), why(w) {}
};

// Lets a job pause or go on, as its stream wishes by now (state_block::pause_until).
struct pause_job {
  job_stream::owner_end stream;
  engine_id engine;
  pause_job(job_stream::owner_end s, engine_id e) : stream(std::move(s)), engine(e) {}
};

// Loads a model, makes its engine and answers with the served model or the error.
struct load_model {
  using result = host::opened;
  model_spec spec;
  model_progress progress;
  reply<result> answer;
  load_model(model_spec s, model_progress p, reply<result> a)
      : spec(std::move(s)), progress(std::move(p)), answer(std::move(a)) {}
};

// A load has ended. The owner adopts the engine, or passes the load's error on.
struct load_ended {
  loaded what;
  model_spec spec;
  reply<load_model::result> answer;
  load_ended(loaded w, model_spec s, reply<load_model::result> a)
      : what(std::move(w)), spec(std::move(s)), answer(std::move(a)) {}
};

// Ends an engine, and answers with what it counted once its memory is free.
struct close_engine {
  using result = core::engine_totals;
  engine_id engine;
  reply<result> answer;
  close_engine(engine_id e, reply<result> a) : engine(e), answer(std::move(a)) {}
};

enum class nap : std::uint8_t { sleep, wake };

// Puts an engine that has no job to sleep, or wakes it, and answers as host::sleep() and wake() say.
struct nap_engine {
  using result = core::result<>;
  engine_id engine;
  nap what;
  reply<result> answer;
  nap_engine(engine_id e, nap w, reply<result> a) : engine(e), what(w), answer(std::move(a)) {}
};

// The loader is done with an engine that was to sleep or to wake. `held`: null: it broke, and is destroyed.
struct nap_ended {
  engine_id engine;
  nap what;
  std::unique_ptr<core::engine> held;
  core::result<> result;
  reply<nap_engine::result> answer;
  nap_ended(engine_id e, nap w, std::unique_ptr<core::engine> h, core::result<> r,
            reply<nap_engine::result> a)
      : engine(e), what(w), held(std::move(h)), result(std::move(r)), answer(std::move(a)) {}
};

// Changes the number of pages of an engine's pool, and answers as host::resize() says.
struct resize_engine {
  using result = core::result<>;
  engine_id engine;
  std::uint32_t pages;
  reply<result> answer;
  resize_engine(engine_id e, std::uint32_t p, reply<result> a) : engine(e), pages(p), answer(std::move(a)) {}
};

// The loader's thread has changed the size of a pool, or has failed to.
struct pages_set {
  engine_id engine;
  std::shared_ptr<pool_change_word> change;
  core::result<> result;
  pages_set(engine_id e, std::shared_ptr<pool_change_word> c, core::result<> r)
      : engine(e), change(std::move(c)), result(std::move(r)) {}
};

// Sets the weight of an engine among those of the device.
struct set_share {
  engine_id engine;
  double weight;
  set_share(engine_id e, double w) : engine(e), weight(w) {}
};

// Timer message: the time has come for a step, for a load or a sleep, or for another start of the device.
struct time_came {};

using owner_msg = std::variant<submit_job, cancel_job, pause_job, load_model, load_ended, close_engine,
                               nap_engine, nap_ended, resize_engine, pages_set, set_share, time_came>;

}  // namespace weir::actors
