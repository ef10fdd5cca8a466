// served_model.h — what everybody but the owner knows of a model that is being served: immutable, shared by pointer.
//
// The counter is the exception: admission is decided on it, from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/job.h"
#include "core/model/model.h"
#include "core/sample/params.h"
#include "core/text/chat_template.h"
#include "core/text/tokenizer.h"

namespace weir::actors {

struct served_model {
  std::string name;
  std::string device;                 // cpu, reference, cuda:N, sim
  core::model_info info;
  std::uint32_t context = 0;          // longest sequence: the least of the model's own, --max-seq-len and the page pool
  std::shared_ptr<const core::tokenizer> tokenizer;
  std::shared_ptr<const core::chat_template> chat;
  core::sampling_params defaults;     // generation_config.json
  std::uint32_t max_tokens_default = 4096;
  std::int64_t created_s = 0;
  // The way to its owner, from any thread. Never refused: the owner's mailbox holds more than `capacity` jobs.
  std::function<void(core::job)> submit;
  std::function<void(const core::job_id&, core::finish_reason)> cancel;
  std::uint32_t capacity = 0;         // jobs at once: --queue and --max-batch together
  mutable std::atomic<std::uint32_t> jobs{0};  // admitted and not yet ended
};

}  // namespace weir::actors
