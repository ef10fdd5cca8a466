// service_doors.h — the parts of a service that a fleet uses (actors/fleet). They live as long as the
// service.
//
// Thread safety: as each part says.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/host.h"
#include "actors/job_finder.h"
#include "actors/job_state.h"
#include "actors/load_line.h"
#include "actors/model_list.h"
#include "actors/model_orders.h"
#include "actors/on_demand.h"
#include "actors/text_pool.h"
#include "core/delays.h"
#include "core/grammar/cache.h"
#include "core/incidents.h"
#include "core/memory/account.h"

namespace weir::actors {

struct service_doors {
  model_list& list;
  text_pool& texts;        // for short work on texts
  text_pool& constraints;  // for compiling
  const std::vector<std::unique_ptr<host>>& hosts;
  std::shared_ptr<const core::clock> lasting;
  std::shared_ptr<core::memory_account> memory;
  std::shared_ptr<core::grammar::constraint_cache> compiled;
  std::shared_ptr<core::delays> cancel_to_release;
  std::shared_ptr<core::incidents> seen;
  // Keeps `what` until no host of the service is left: a thread to which hosts send news of jobs.
  std::function<void(std::shared_ptr<const void> what)> keep;
  // Makes the block of a job that began elsewhere, at `created`, and tells the registry of jobs. `who`,
  // `accounts` and `skip_special_tokens` of the request are used. `answer`: id of the first choice. To be
  // called on the shard.
  std::function<std::shared_ptr<job_stream::state_block>(
      const request& r, core::job_id id, core::job_id answer, core::time_point created,
      std::shared_ptr<const served_model> model, const executor& shard)>
      begin_job;
  // As service::all_models(). Any thread.
  std::function<models_picture()> all_models;
  // Who looks for jobs that the service does not have.
  std::function<void(std::weak_ptr<job_finder>)> set_finder;
  const on_demand& demand;
  // As model_registry::wish(), for a model of the service's own. Any thread.
  std::function<void(model_wish)> wish;
};

}  // namespace weir::actors
