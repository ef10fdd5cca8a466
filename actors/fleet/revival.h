// revival.h — a job that another gateway had, on its way from the frame that its worker was sent to a stream
// here.
//
// Thread safety: one thread at a time: a text thread, then the shard that gets the stream.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "actors/fleet/far_port.h"
#include "actors/fleet/far_search.h"
#include "actors/job_finder.h"
#include "actors/served_model.h"
#include "actors/service_doors.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/fleet/job_frame.h"
#include "core/fleet/resume_part.h"
#include "core/text/answer/plan.h"

namespace weir::actors::fleet {

struct revival {
  far_searches::name search;
  far_searches::whole found;
  core::time_point at{};  // when it was found
  job_accounts accounts;
  std::shared_ptr<const served_model> model;
  std::shared_ptr<const model_place> place;  // where the job runs

  // ---- set by read_revival()
  core::fleet::job_order order;
  core::fleet::resume_part part;
  std::shared_ptr<const core::answer_plan> plan;  // null: the answer is one text
};

// Reads the frame as a worker does, and checks it against the model and against who asks. A text thread.
// Errors: not_found where the client has no such job; not_supported, by name, for what cannot go on here.
core::result<> read_revival(revival& r);

// Makes the stream, on its shard, and tells the far_owner to adopt the job. Errors: overloaded.
core::result<found_job> begin_revival(revival& r, const service_doors& doors, const ref<far_message>& to,
                                      const executor& shard);

}  // namespace weir::actors::fleet
