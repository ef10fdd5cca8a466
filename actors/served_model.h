// served_model.h — a model as all code but its owner sees it.
//
// Thread safety: any thread. It is immutable once served and shared by pointer; only `ended` has state, which
// is atomic. A model that gets another place becomes another object, which shares the rest.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/breakers.h"
#include "actors/constraint_store.h"
#include "actors/ended_jobs.h"
#include "actors/model_place.h"
#include "core/model/model.h"
#include "core/sample/params.h"
#include "core/text/answer/plan.h"
#include "core/text/chat/chat_template.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::actors {

namespace fleet {
class text_files;  // actors/fleet/text_files.h
}

struct served_model {
  std::string name;  // the name that clients use
  core::model_info info;
  std::vector<std::shared_ptr<const model_place>> places;  // where it runs; never empty once it is served
  std::uint32_t context = 0;                               // most tokens of a sequence in any of the places
  std::shared_ptr<const core::tokenizer> tokenizer;
  std::shared_ptr<const core::chat_template> chat;
  // How the model writes answers to conversations: without tools, and with them. Never null.
  std::array<std::shared_ptr<const core::known_format>, 2> answers;
  std::shared_ptr<constraint_store> constraints;  // never null
  std::shared_ptr<breaker_store> breakers = std::make_shared<breaker_store>();  // never null
  core::sampling_params defaults;        // from generation_config.json
  std::vector<std::string> notes;        // for the log, as core::loaded_model
  std::uint32_t max_tokens_default = 0;  // of a request that does not set max_tokens
  std::optional<std::uint32_t>
      max_tokens;                        // most that a request may set; nullopt: no limit of the model's own
  std::int64_t created_s = 0;            // Unix time of its load, in s
  // What OpenAI's API calls system_fingerprint: the same for all answers of one load of the model, and
  // another one after each load, since the weights, the device or the program may have changed.
  std::string fingerprint;
  // What gateways can have instead of the model's files; null: the model has none to give, or the service is
  // no worker.
  std::shared_ptr<const fleet::text_files> files;
  // How its jobs ended, as their streams told clients: the streams count. Never null.
  std::shared_ptr<ended_jobs> ended = std::make_shared<ended_jobs>();
};

}  // namespace weir::actors
