// served_model.h — what everybody but the owner knows of a model that is being served: immutable, shared by
// pointer.
//
// Its door is the exception: admission is decided there, from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/memory_use.h"
#include "actors/way_in.h"
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
  memory_use memory;
  // longest sequence: the least of the model's own, --max-seq-len and the page pool
  std::uint32_t context = 0;
  std::shared_ptr<const core::tokenizer> tokenizer;
  std::shared_ptr<const core::chat_template> chat;
  core::sampling_params defaults;     // generation_config.json
  std::uint32_t max_tokens_default = 4096;
  std::int64_t created_s = 0;
  std::unique_ptr<way_in> door;       // never null once it is served
  // The way to its owner, from any thread. Never refused: the owner's mailbox holds more jobs than the door
  // lets in.
  std::function<void(core::job)> submit;
  std::function<void(const core::job_id&, core::finish_reason)> cancel;
};

}  // namespace weir::actors
