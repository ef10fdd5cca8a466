// cell_jobs.h — the jobs of a service and, in a fleet, those that the workers of its cell have for other
// gateways: listed, found and cancelled as if all were here.
//
// A job that a gateway has not found a worker for is known to that gateway alone.
//
// Thread safety: any thread. `done` is called once, on `ex`. The service must outlive the call of `done`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "actors/job_view.h"
#include "actors/service.h"

namespace weir::actors {

struct cell_jobs {
  // Jobs that run, the youngest first; then those that have ended. Of the service the last 1,000 of these,
  // and of others what their workers keep, about a minute long.
  std::vector<job_view> jobs;
  std::uint32_t silent = 0;    // workers that live and have not answered
  std::uint64_t left_out = 0;  // jobs of other gateways for which an answer has no room
};
void list_cell_jobs(service& s, asker who, executor ex, std::function<void(cell_jobs)> done);

struct cell_job {
  std::optional<job_view> job;  // nullopt: `who` does not see it, or it is no longer kept
  bool elsewhere = false;       // another gateway has it
  std::uint32_t silent = 0;     // as cell_jobs::silent: these may have the job
};
void find_cell_job(service& s, asker who, core::job_id id, executor ex, std::function<void(cell_job)> done);
// As service::cancel_job(), of a job or an answer wherever it is.
void cancel_cell_job(service& s, asker who, core::job_id id, executor ex, std::function<void(cell_job)> done);

}  // namespace weir::actors
