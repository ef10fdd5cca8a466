// make_job.h — a request becomes a job: prompt to tokens, defaults filled in, every range checked by name.
#pragma once

#include "actors/request.h"
#include "actors/served_model.h"
#include "core/error.h"
#include "core/job.h"

namespace weir::actors {

// Pure, any thread; costs as much as tokenising the prompt. The job has no id, no sink and no creation time
// yet; `deadline` is left to the caller, who knows when the request came.
core::result<core::job> make_job(const request& r, const served_model& m);

// The job of the answer number `index` of several to the same request: it draws numbers of its own.
core::job choice_of(const core::job& first, const request& r, std::uint32_t index);

// What a job's prefixes are shared under: the owner's name and the salt that it chose, so that no owner can
// write another's. `owner` 0: of nobody, or of all together.
std::string prefix_salt(std::uint64_t owner, std::string_view chosen);

}  // namespace weir::actors
