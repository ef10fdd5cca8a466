// make_job.h — makes a job of a request: tokenises the prompt, fills in defaults and checks every range.
//
// Thread safety: any thread; no shared state.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "actors/constraint_store.h"
#include "actors/request.h"
#include "actors/served_model.h"
#include "core/error.h"
#include "core/job.h"
#include "core/text/answer/plan.h"
#include "core/text/template/template.h"

namespace weir::actors {

// The longest that a chat template may run for one request, others' turns not counted.
inline constexpr core::duration longest_rendering = std::chrono::seconds(1);

// The time in the time zone of the process.
std::chrono::local_seconds local_now();

// What the jobs of all prompts of a request to model `m` have in common. Errors name the field that is wrong.
// The caller still sets id, sink, created and deadline. The request's constraint is left to
// constraint_store.h.
core::result<core::job> job_without_prompt(const request& r, const served_model& m);

// Checks the sampling fields of a request as far as that takes no model, which says what tokens there are.
// Errors name the field that is wrong.
core::result<void> check_sampling(const core::sampling_request& r);

// A request's banned strings as a job has them, their letters A to Z small. Errors name `banned_strings`.
core::result<std::vector<std::string>> banned_strings_of(const std::vector<std::string>& asked);

// What is known of a request's answer before its prompt is tokenised.
struct prepared_request {
  std::optional<core::jinja::rendering> prompt;     // of a conversation whose answer has parts
  std::vector<std::string> notes;                   // of its rendering, as chat_template::render() has them
  std::shared_ptr<const core::answer_plan> answer;  // null: the answer is one text
  // What the answer may be, where calls or reasoning have a part in that; unset: as the request says.
  std::optional<core::grammar::constraint_text> constraint;
  constraint_warnings unmet;  // of what the request asks of calls and reasoning
};
// Renders the conversation of a request whose answer has parts. Errors name the field that is wrong: tools
// that the model's template has no format for, or what take_prompt() says.
core::result<prepared_request> prepare(const request& r, const served_model& m, core::turn& at,
                                       std::chrono::local_seconds now = local_now());

// Adds the request's prompt to such a job. Takes as long as tokenising the prompt. Errors name the field that
// is wrong; unavailable where `at` says that nobody wants the job. `now`: for chat templates that print the
// date. `notes`, unless null, gets those of the prompt's rendering.
core::result<void> take_prompt(core::job& j, const request& r, const prepared_request& known,
                               const served_model& m, core::turn& at,
                               std::chrono::local_seconds now = local_now(),
                               std::vector<std::string>* notes = nullptr);

// The tokens of a request's prompt for model `m`, as take_prompt() makes them. They may be more than the
// model's context has room for. Errors name the field that is wrong.
core::result<std::vector<core::token_id>> prompt_of(const request& r, const prepared_request& known,
                                                    const served_model& m, core::turn& at,
                                                    std::chrono::local_seconds now = local_now(),
                                                    std::vector<std::string>* notes = nullptr);

// The error for a request that nobody waits for any more.
core::error unwanted();

// The job of choice `index` of a prompt, made from the job of all its choices, whose lists it shares. Each
// draws other random numbers; where the request sets no seed, each has a seed of its own.
core::job choice_of(const core::job& all, const request& r, std::uint32_t index);

// The job::cache_salt under which prefixes are shared, from a prefix owner and the salt that the client
// chose. It differs for different owners. `owner`: the identity of an API key (request::key), or 0 where
// there are no keys or all keys share prefixes.
std::string prefix_salt(std::uint64_t owner, std::string_view chosen);

}  // namespace weir::actors
