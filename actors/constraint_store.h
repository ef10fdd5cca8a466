// constraint_store.h — the constraints of one model's requests, compiled, and remembered for the next request
// with the same one.
//
// Thread safety: any thread. One constraint is compiled at a time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/grammar/compile.h"
#include "core/grammar/constraint.h"
#include "core/text/tokenizer.h"
#include "core/token.h"

namespace weir::actors {

using constraint_warnings = std::vector<core::grammar::warning>;

struct compiled_constraint {
  std::shared_ptr<core::grammar::constraint> rules;
  std::shared_ptr<const constraint_warnings> warnings;  // what is not enforced; null: nothing
};

class constraint_store {
 public:
  // `stop_ids`: the model's own, which belong to no text.
  constraint_store(std::shared_ptr<const core::tokenizer> words, std::vector<core::token_id> stop_ids,
                   std::shared_ptr<const core::clock> time);

  // `param`: the client's name of the constraint, in front of the place that an error names. `cancelled`:
  // nobody waits any more; may be null. The first call also sorts the vocabulary, which takes some 100 ms.
  core::result<compiled_constraint> get(const core::grammar::constraint_text& text, const std::string& param,
                                        const std::atomic<bool>* cancelled);

 private:
  const std::shared_ptr<const core::tokenizer> words_;
  const std::vector<core::token_id> stop_ids_;
  const std::shared_ptr<const core::clock> time_;
  std::mutex mutex_;
  std::shared_ptr<core::grammar::terminal_views> views_;  // made by the first call
};

}  // namespace weir::actors
