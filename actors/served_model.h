// served_model.h — a model as all code but its owner sees it.
//
// Thread safety: any thread. It is immutable once served and shared by pointer; only `admission` and `ended`
// have state, which is atomic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/admission_control.h"
#include "actors/constraint_store.h"
#include "actors/ended_jobs.h"
#include "actors/job_stream.h"
#include "actors/memory_use.h"
#include "core/job.h"
#include "core/model/model.h"
#include "core/sample/params.h"
#include "core/text/chat/chat_template.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::actors {

// Identity of an engine among those of its owner. An engine that is made anew after a fault keeps it.
enum class engine_id : std::uint32_t {};

struct served_model {
  std::string name;    // the name that clients use
  engine_id engine{};  // the engine that runs it
  std::string device;  // cpu, reference, cuda:N, sim
  core::model_info info;
  memory_use memory;  // bytes that it takes
  // Most tokens of a sequence: the smallest of the model's context, --max-seq-len and the page pool.
  std::uint32_t context = 0;
  std::shared_ptr<const core::tokenizer> tokenizer;
  std::shared_ptr<const core::chat_template> chat;
  std::shared_ptr<constraint_store> constraints;  // never null
  core::sampling_params defaults;        // from generation_config.json
  std::uint32_t max_tokens_default = 0;  // of a request that does not set max_tokens
  std::int64_t created_s = 0;            // Unix time of its load, in s
  // What OpenAI's API calls system_fingerprint: the same for all answers of one load of the model, and
  // another one after each load, since the weights, the device or the program may have changed.
  std::string fingerprint;
  std::unique_ptr<admission_control> admission;  // never null once it is served
  // How its jobs ended, as their streams told clients: the streams count. Never null.
  std::unique_ptr<ended_jobs> ended = std::make_unique<ended_jobs>();
  // Sends a job to the owner, which writes the output to `end`. The mailbox cannot be full, since it has room
  // for all jobs that admission allows. REQUIRES: job.sink is null.
  std::function<void(core::job, job_stream::owner_end end)> submit;
  // Asks the owner to end a job.
  std::function<void(const core::job_id&, core::finish_reason)> cancel;
  // Asks the owner to read whether a job has to pause. At most one such question of a job is in the mailbox.
  std::function<void(job_stream::owner_end)> pause;
};

}  // namespace weir::actors
