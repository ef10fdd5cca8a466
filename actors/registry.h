// registry.h — the actor that lists jobs, finds them, cancels them by id and reports when none is left.
//
// It keeps every live job, from its creation to its ending, and one line for each of the last 1,000 jobs that
// ended. A client sees only the jobs that it has() (actors/request.h); all others are unknown to it.
//
// Thread safety: messages from any thread. The callbacks in messages are called on the registry's thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/job_stream.h"
#include "actors/job_view.h"
#include "actors/runtime/context.h"
#include "actors/runtime/spawn.h"
#include "core/clock.h"
#include "core/incidents.h"

namespace weir::actors {

// A job was created.
struct job_born {
  core::job_id id, answer;  // answer: id of the first choice of the same request
  principal owner;          // request::who
  core::time_point created;
  std::function<void()> cancel;  // any thread
  job_born(core::job_id i, core::job_id first, principal who, core::time_point t, std::function<void()> c)
      : id(i), answer(first), owner(who), created(t), cancel(std::move(c)) {}
};

// A job ended or was refused.
struct job_ended {
  job_view last;
  bool was_accepted;  // false: it was refused, and no line of it is kept
  job_ended(job_view v, bool accepted) : last(std::move(v)), was_accepted(accepted) {}
};

// Asks for the jobs that `who` may see; see service::list_jobs.
struct list_jobs {
  asker who;
  std::function<void(std::vector<job_view>)> done;
  list_jobs(asker k, std::function<void(std::vector<job_view>)> d) : who(k), done(std::move(d)) {}
};

// Asks for one job. With `cancel`, the job is cancelled, and so are all jobs of the answer that has this id.
// `done` is then called once all these jobs have ended.
struct find_job {
  asker who;
  core::job_id id;
  bool cancel;
  std::function<void(std::optional<job_view>)> done;
  find_job(asker k, core::job_id i, bool c, std::function<void(std::optional<job_view>)> d)
      : who(k), id(i), cancel(c), done(std::move(d)) {}
};

// Cancels every live job.
struct cancel_all {};

// Asks for one call of `done` when no job is live.
struct when_empty {
  std::function<void()> done;
  explicit when_empty(std::function<void()> d) : done(std::move(d)) {}
};

using registry_msg = std::variant<job_born, job_ended, list_jobs, find_job, cancel_all, when_empty>;

// Starts the registry on an executor. `time` must outlive it. `look` fills the state, tokens and pages of
// live jobs from what their owner published. `seen` records exceptions.
ref<registry_msg> spawn_registry(executor where, const core::clock& time,
                                 std::shared_ptr<core::incidents> seen,
                                 std::function<void(std::vector<job_view>&)> look);

}  // namespace weir::actors
