// job_view.h — a job as lists show it, and who may look.
//
// Thread safety: plain data; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/request.h"
#include "core/job.h"

namespace weir::actors {

struct job_view {
  core::job_id id;
  std::string state;  // queued, prefilling, decoding or finished
  std::string model;
  std::string finish_reason;  // of a finished job
  std::uint32_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0, pages = 0, preemptions = 0;
  int priority = 0;
  double age_s = 0;  // since its request was read
};

// Who asks for jobs. A client sees only those that it has(); nullopt is the program itself, which sees all.
using asker = std::optional<principal>;

}  // namespace weir::actors
