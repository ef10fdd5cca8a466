// registry.h — which jobs there are and were: the actor behind /v1/jobs, cancelling by id, and draining.
// A key sees its own jobs: for everybody else they are not there.
//
// It keeps every job from its birth to its ending, and one line for each of the last 1,000 that ended.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/job_stream.h"
#include "actors/runtime/context.h"
#include "actors/runtime/spawn.h"
#include "actors/service.h"

namespace weir::actors {

struct job_born {
  core::job_id id;
  std::uint64_t key;             // whose it is
  core::time_point created;
  std::function<void()> cancel;  // any thread
  job_born(core::job_id i, std::uint64_t k, core::time_point t, std::function<void()> c)
      : id(i), key(k), created(t), cancel(std::move(c)) {}
};

struct job_ended {
  job_view last;
  bool was_accepted;  // a refused one leaves no line
  job_ended(job_view v, bool accepted) : last(std::move(v)), was_accepted(accepted) {}
};

struct list_jobs {
  service::asker who;
  std::function<void(std::vector<job_view>)> done;
  list_jobs(service::asker k, std::function<void(std::vector<job_view>)> d) : who(k), done(std::move(d)) {}
};

// Answers at once, or with `cancel` once the job has ended.
struct find_job {
  service::asker who;
  core::job_id id;
  bool cancel;
  std::function<void(std::optional<job_view>)> done;
  find_job(service::asker k, core::job_id i, bool c, std::function<void(std::optional<job_view>)> d)
      : who(k), id(i), cancel(c), done(std::move(d)) {}
};

struct cancel_all {};

struct when_empty {
  std::function<void()> done;
  explicit when_empty(std::function<void()> d) : done(std::move(d)) {}
};

using registry_msg = std::variant<job_born, job_ended, list_jobs, find_job, cancel_all, when_empty>;

// `look` fills a live job's state, tokens and pages from what its owner published.
// `seen` learns of exceptions.
ref<registry_msg> spawn_registry(executor where, const core::clock& time,
                                 std::shared_ptr<core::incidents> seen,
                                 std::function<void(std::vector<job_view>&)> look);

}  // namespace weir::actors
