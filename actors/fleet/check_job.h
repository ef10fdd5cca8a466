// check_job.h — a job that came from another process, against the model that is to run it.
//
// Thread safety: pure functions.
#pragma once

#include "actors/model_place.h"
#include "actors/served_model.h"
#include "core/error.h"
#include "core/job.h"

namespace weir::actors::fleet {

// What read_job() (core/fleet/job_frame.h) could not check: every id of a token is in the model's vocabulary,
// the prompt has room in the place's context, the context can shift where it has to. Errors: invalid_param
// and prompt_too_long, as make_job.h gives them for requests; not_supported for what no worker does.
core::result<void> check_job(const core::job& j, const served_model& m, const model_place& at);

// Bytes that the job is charged in the account of memory, beside its log: as arrivals of requests are.
std::uint64_t bytes_of(const core::job& j);

// Whether what the job's lists are made of has to be made ready: its constraint, its healing or its breakers.
bool needs_making(const core::job& j);

}  // namespace weir::actors::fleet
