// job_witness.h — hears how each job of a request has ended, or that it was refused.
//
// Thread safety: called on the shard of the request's jobs; destroyed there with the last of them.
#pragma once

#include <string_view>

#include "actors/job_stream.h"
#include "core/error.h"

namespace weir::actors {

// All views are valid during the call.
struct ended_job {
  const core::job_id& id;
  std::string_view model;      // that took it; empty: none did
  const outcome& how;          // of a refused job: nothing but the reason `error`
  const core::error* refusal;  // null: the job was not refused
  core::duration lasted;       // since its request was read
};

class job_witness {
 public:
  virtual ~job_witness() = default;
  virtual void ended(const ended_job& job) noexcept = 0;
};

}  // namespace weir::actors
