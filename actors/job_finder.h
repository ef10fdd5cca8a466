// job_finder.h — what a service asks its fleet: for a job that no shard of this process has, whose client
// lost another gateway and has come here; for the jobs that the workers of the cell have; and for a model
// that no worker has ready (actors/fleet/far_owner.h).
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
#include "actors/job_view.h"
#include "actors/load_line.h"
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

// Which jobs the workers of the cell have.
struct cell_question {
  struct one {
    job_view view;
    bool elsewhere = false;  // another gateway has it, or had it last
  };
  struct answer {
    std::vector<one> jobs;       // each once
    std::uint32_t silent = 0;    // workers that live and did not answer in time, or could not be asked
    std::uint64_t left_out = 0;  // jobs beyond what an answer has room for
  };

  asker who;
  // The job of this id, and with `cancel` all jobs of the answer of this id; nullopt: all jobs.
  std::optional<core::job_id> id;
  // They end as by their clients' wish, and the answer comes when they have, or after a while. Needs an id.
  bool cancel = false;
  executor ex;
  std::function<void(answer)> done;  // called once, on `ex`
};

class job_finder {
 public:
  job_finder() = default;
  job_finder(const job_finder&) = delete;
  job_finder& operator=(const job_finder&) = delete;
  virtual ~job_finder() = default;

  virtual void find(job_search s) = 0;
  virtual void ask(cell_question q) = 0;
  // A request waits for a model of the fleet, as model_registry::wish().
  virtual void wish(model_wish w) = 0;
  // As model_registry::end_wishes().
  virtual void end_wishes(core::error why) = 0;
};

}  // namespace weir::actors
