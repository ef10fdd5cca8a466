// What the owner of a device does with jobs.
#include "actors/owner_mind.h"

#include "core/insist.h"

namespace weir::actors {
namespace {

core::error model_sleeps() { return core::make_error(core::errc::unavailable, "the model sleeps"); }

// Ends a job that no engine has, with the error that `why` makes. Waits for memory where it is short, since
// nobody else would tell the client.
template <class F>
void refuse(core::token_sink& sink, F why) {
  core::insist([&] {
    core::ending how;
    how.reason = core::finish_reason::error;
    how.fault = why();
    sink.finish(how);
  });
}

}  // namespace

void owner_mind::on(submit_job& m) {
  m.stream->out = &outbox_;
  if (rests()) board_->beat(time_.now(), true);
  auto* const e = find(m.engine);
  if (!e) return refuse(*m.stream, sleepers_.has(m.engine) ? model_sleeps : model_is_gone);
  if (!e->engine)
    return refuse(*m.stream,
                  [&] { return core::make_error(core::errc::unavailable, "{}", board_->fault()); });
  if (e->engine->idle()) e->pace.wake(time_.now());
  m.job.sink = m.stream;
  try {
    e->engine->submit(std::move(m.job));
  } catch (const std::bad_alloc&) {  // the engine is as it was before
    shared_.seen->note("a job on its way into the engine", std::current_exception());
    return refuse(*m.stream, [] {
      return core::make_error(core::errc::overloaded, "there is no memory for this job now");
    });
  }
  e->due = {};
}

core::error owner_mind::model_is_gone() {
  return core::make_error(core::errc::unavailable, "the model was unloaded");
}

void owner_mind::on(cancel_job& m) {
  auto* const e = find(m.engine);
  if (!e || !e->engine) return;
  e->engine->cancel(m.id, m.why);
  e->due = {};
  if (const auto fault = e->engine->fault()) device_failed(*fault);
}

void owner_mind::on(pause_job& m) {
  m.stream->pause_told.store(false);  // before the wish is read: a later wish sends a message of its own
  const auto until = m.stream->pause_until.load();
  auto* const e = find(m.engine);
  if (!e || !e->engine) return;
  if (until == core::time_point::min())
    e->engine->resume(m.stream->id);
  else if (m.stream->pausable)
    e->engine->pause(m.stream->id, until);
  e->due = {};
}

}  // namespace weir::actors
