// constraint_store.h — the compiled constraints of one model's requests, kept for later requests with the
// same constraint.
//
// Compiling ends when it has used its time, or when nobody waits for it any more; its work is also bounded in
// units (core/grammar/fuel.h). Others have their turns meanwhile (core/turn.h).
//
// Thread safety: any thread. A call does not wait while another thread compiles.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/grammar/cache.h"
#include "core/grammar/compile.h"
#include "core/grammar/constraint.h"
#include "core/text/tokenizer/tokenizer.h"
#include "core/token.h"
#include "core/token_set.h"
#include "core/turn.h"

namespace weir::actors {

using constraint_warnings = std::vector<core::grammar::warning>;

struct compiled_constraint {
  std::shared_ptr<core::grammar::constraint> rules;
  std::shared_ptr<const constraint_warnings> warnings;  // what is not enforced; null: nothing
};

class constraint_store {
 public:
  // `stop_ids`: the model's own, which belong to no text. `most_time`: for one constraint; zero: no limit.
  // `kept`: what the models of a process share.
  constraint_store(std::shared_ptr<const core::tokenizer> words, const core::token_set& stop_ids,
                   std::shared_ptr<const core::clock> time, core::duration most_time,
                   std::shared_ptr<core::grammar::constraint_cache> kept);

  // `param`: the client's name of the constraint, with which the place in an error begins. nullopt: another
  // caller compiles it, and calls `settled` on its thread at the end; then ask again. The first call also
  // sorts the vocabulary, which takes some 100 ms. Errors: invalid_param and not_supported as
  // core/grammar/compile.h says; overloaded if its time is over, now or some seconds ago, or memory is short;
  // unavailable if nobody wants it any more.
  std::optional<core::result<compiled_constraint>> get(const core::grammar::constraint_text& text,
                                                       const std::string& param, core::turn& at,
                                                       std::function<void()> settled);

  // The answer of get() if it is known without compiling.
  std::optional<core::result<compiled_constraint>> known(const core::grammar::constraint_text& text,
                                                         const std::string& param);

 private:
  using answer = core::grammar::constraint_cache::answer;
  answer compile(const core::grammar::constraint_text& text, core::turn& at);
  answer compile_and_keep(const core::grammar::cache_key& key, const core::grammar::constraint_text& text,
                          core::turn& at);
  std::shared_ptr<core::grammar::terminal_views> views();

  const std::shared_ptr<const core::tokenizer> words_;
  const std::vector<core::token_id> stop_ids_;
  const std::shared_ptr<const core::clock> time_;
  const core::duration most_time_;
  const std::shared_ptr<core::grammar::constraint_cache> kept_;
  const std::string vocabulary_;  // its name in `kept_`
  std::mutex mutex_;              // of views_
  std::shared_ptr<core::grammar::terminal_views> views_;  // made by the first call
};

}  // namespace weir::actors
