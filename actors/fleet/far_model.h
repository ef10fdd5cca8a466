// far_model.h — a model that runs in other processes, as a gateway knows it: everything but weights.
//
// Thread safety: any thread; immutable.
#pragma once

#include <cstdint>
#include <memory>

#include "actors/gpu_owner.h"
#include "actors/host.h"
#include "actors/served_model.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/grammar/cache.h"

namespace weir::actors::fleet {

// Tokenizer, chat template, config and defaults; it has no place yet. Never null.
using far_model = std::shared_ptr<const served_model>;

// Opens a model's files without its weights. `spec.source`: a directory, a GGUF file, random:SHAPE or
// sim[:SPEC]. `o`: chat_template, chatml, max_tokens_default, grammar_time and context are used. `time`: of
// constraints; `constraints`: those that were compiled before, null: none. Errors name the file or the option
// that is wrong.
core::result<far_model> open_far_model(const model_spec& spec, const owner_options& o,
                                       std::shared_ptr<const core::clock> time,
                                       std::shared_ptr<core::grammar::constraint_cache> constraints);

// The same for a model that the service has: it runs in other processes, too. The copy shares everything but
// places.
far_model far_copy(const served_model& m);

// Equal for models that have the same tokens, stop ids and architecture, so that a job of one can run in the
// other. Takes some milliseconds.
std::uint64_t digest_of(const served_model& m);

}  // namespace weir::actors::fleet
