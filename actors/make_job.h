// make_job.h — a request becomes a job: prompt to tokens, defaults filled in, every range checked by name.
#pragma once

#include "actors/request.h"
#include "actors/served_model.h"
#include "core/error.h"
#include "core/job.h"

namespace weir::actors {

// Pure, any thread; costs as much as tokenising the prompt. The job has no id, no sink and no creation time yet;
// `deadline` is left to the caller, who knows when the request came.
core::result<core::job> make_job(const request& r, const served_model& m);

}  // namespace weir::actors
