// job_finder.h — looks for a job that no shard of this process has: in a fleet another gateway may have had
// it, and its client has come here (actors/fleet/far_owner.h).
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/job_stream.h"
#include "actors/request.h"
#include "core/error.h"

namespace weir::actors {

// A job that goes on here from now on.
struct found_job {
  std::shared_ptr<job_stream> stream;  // it lives on the shard that asked; its tokens come from the first on
  principal owner;
  std::vector<core::job_id> choices;  // of its answer, in order, where it is the first of them; else empty
  std::string client;                 // as request::resumable
  std::uint32_t tokens = 0;           // that it had when it was found
};

struct job_search {
  enum class end {
    nothing,  // nobody has such a job for this client
    here,     // another search has brought it here meanwhile, or it was here all the time
    refused,  // it cannot be looked for now, or cannot go on here: `why` says it
    found
  };
  struct answer {
    end how = end::nothing;
    std::optional<core::error> why;
    std::optional<found_job> job;
  };

  core::job_id id;
  principal who;
  job_accounts accounts;  // that count the job, if it is found
  executor shard;
  std::function<void(answer)> done;  // called once, on `shard`
};

class job_finder {
 public:
  job_finder() = default;
  job_finder(const job_finder&) = delete;
  job_finder& operator=(const job_finder&) = delete;
  virtual ~job_finder() = default;

  virtual void find(job_search s) = 0;
};

}  // namespace weir::actors
