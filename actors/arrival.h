// arrival.h — a request on its way in: from the moment it was read until its choices have entered their
// model, or were all refused.
//
// Thread safety: one thread at a time: the shard where it was read, then the text task.
#pragma once

#include <memory>
#include <vector>

#include "actors/job_state.h"
#include "actors/request.h"
#include "actors/served_model.h"
#include "core/memory/account.h"

namespace weir::actors {

// What a job counts for in the account of memory beside its prompt and its log: streams, a sequence, a place
// in lists.
inline constexpr std::uint64_t job_bytes = 4096;

// The refusal of a job for which the account has no room.
core::error no_memory_for_clients();

struct arrival {
  request asked;
  std::vector<std::shared_ptr<job_stream::state_block>> choices;  // in order; of one shard; never empty
  std::shared_ptr<const served_model> model;                      // set before bring_in()
  core::memory_hold memory;                                       // of the text, then of the prompts
  std::uint64_t prefix_owner = 0;  // with whom it shares what is computed; see prefix_salt

  // Bytes of what has to be tokenised or looked through.
  std::uint64_t bytes() const;

  // The request becomes one job for each choice that was not cancelled meanwhile. They enter the model
  // together, or their streams learn why not. Costs as much as tokenising the prompt. What it throws leaves
  // the door as it was, and those choices to be refused that have not entered.
  void bring_in();

  // Every choice that has not ended and entered nothing learns of it, on its shard.
  void refuse(core::error why) const;
};

}  // namespace weir::actors
