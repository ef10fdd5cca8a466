// request.h — what a client asked for, parsed but not checked: the text pool makes a job of it.
//
// Plain data, made by the parsers in net or by an embedding program. A field that is not set takes the
// model's default (generation_config.json), else the neutral value. Ranges are checked in make_job.h, so that
// every protocol gives the same errors under the same names.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/job_account.h"
#include "core/grammar/compile.h"
#include "core/grammar/forcing.h"
#include "core/sample/params.h"
#include "core/text/answer/tools.h"
#include "core/text/chat/conversation.h"
#include "core/token.h"

namespace weir::actors {

using prompt_ids = std::vector<core::token_id>;
using prompt_input = std::variant<std::string, core::conversation, prompt_ids>;  // a string is a raw prompt

// Whom a job belongs to: an API key, or one user of the key's browser tokens. A user learns nothing of jobs
// that are not its own; the key itself has the jobs of its users, too.
struct principal {
  std::uint64_t key = 0;   // identity of the API key (net/access/api_keys.h); 0: none
  std::uint64_t user = 0;  // identity of the user (net/access/browser_token.h); 0: the key itself
  auto operator<=>(const principal&) const = default;

  bool has(const principal& owner) const { return key == owner.key && (user == 0 || user == owner.user); }
};

// Accounts that count what a client asks for: its own, and that of its name; null: none.
using job_accounts = std::array<std::shared_ptr<job_account>, 2>;

// A client whose text is worked on without a job.
struct text_client {
  std::uint64_t key = 0;  // as principal::key
  job_accounts accounts;
};

class job_witness;

struct request {
  std::string model;  // empty: the only model served
  prompt_input input;
  std::vector<prompt_input> more_inputs;  // further prompts, each with choices of its own
  std::string input_param = "input";      // the client's name of `input`, for errors; of several, of the list
  bool echo = false;                      // job_stream::prompt_text() is asked for; not of a conversation

  bool add_special_tokens = true;                      // to a raw prompt, as the tokenizer does
  bool skip_special_tokens = true;                     // special tokens add nothing to the text of the answer
  // The answer's first token begins with the prompt's last one (core/healing.h); unset: it does not.
  std::optional<bool> token_healing;
  std::optional<std::int64_t> max_tokens, min_tokens;  // output tokens
  bool shifts = false;  // older tokens leave a full context, and the answer goes on (core::job::shifts)
  std::optional<std::int64_t> max_repeats;   // repetitions in a row that end the job; unset: none does
  bool ignore_eos = false;                   // the model's own stop ids do not end the job
  std::vector<std::int64_t> stop_token_ids;  // stop ids beside the model's own
  std::vector<std::string> stop;             // stop strings
  bool shows_stop = false;                   // the stop string that ends the answer is a part of it
  std::string_view stop_param = "stop";      // the client's name of `stop`, for errors; a constant
  // Texts that the answer must not have, in letters of any case; unset: there are none.
  std::optional<std::vector<std::string>> banned_strings;
  core::sampling_request sampling;           // how its tokens are chosen
  std::optional<std::string> preset;         // name of what sets the other fields that it has (presets.h)
  // The fields of `sampling` that the client sent with a value that asks for nothing, such as an empty list.
  // No preset sets them. Constants.
  std::vector<std::string_view> sampling_left_out;
  std::optional<core::grammar::constraint_text> constraint;  // what the answer may be; unset: anything
  std::string constraint_param;              // the client's name of it, for errors
  core::grammar::forcing force = core::grammar::forcing::canonical;  // which tokens it decides
  core::tool_wishes tools;            // that the model may call; of a conversation alone
  std::string tools_param = "tools";  // the client's name of them, for errors
  bool separate_reasoning = false;    // reasoning is a part of the answer; else it is text, marks and all
  bool show_reasoning = true;         // false: that part is left out of what the client gets
  std::optional<std::int64_t> max_reasoning_tokens;          // after which reasoning is ended
  std::string max_reasoning_param = "max_reasoning_tokens";  // the client's name of it, for errors
  // Set: each token comes with its logprob and with those of this many of the likeliest tokens.
  std::optional<std::int64_t> top_logprobs;
  const char* top_logprobs_param = "logprobs";  // the client's name of it, for errors
  std::optional<std::int64_t> prompt_logprobs;  // the same for the tokens of the prompt, with the outcome
  const char* prompt_logprobs_param = "prompt_logprobs";  // the client's name of it, for errors
  // Set: where the jobs run in a fleet, another gateway can go on with them for the client. The text is what
  // it needs to do so beside the jobs themselves, and is read by nobody else; it goes with the first job.
  std::shared_ptr<const std::string> resumable;
  std::string cache_salt;  // computed prefixes are shared only between requests with equal salts
  bool may_pause = false;  // job_stream::pause() may be called: its client asked for it
  std::optional<int> priority;  // jobs with a higher one are scheduled first; unset: 0
  // The client. Waiting jobs of different keys alternate; a client sees only the jobs that it has(). Prefixes
  // are shared within a key, and with service_options::share_prefixes between keys. A user shares its
  // prefixes with nobody else.
  principal who;
  std::shared_ptr<const void> until_ended;  // kept until all jobs of the request have ended or are refused
  std::shared_ptr<job_witness> witness;     // hears of their ends, and is then released; null: nobody
  job_accounts accounts;                    // which count the request's jobs
  // What to do where the model is known and not ready: wait for its load, or refuse with model_loading;
  // unset: as the service does. `stay`: how long the model is to stay after the job, at most as the service
  // allows.
  enum class load { wait, refuse };
  std::optional<load> when_not_loaded;
  std::chrono::milliseconds stay{0};
  std::optional<std::chrono::milliseconds> deadline;  // from the moment the request was read
  std::optional<std::uint64_t> bytes;  // input_bytes() (actors/arrival.h), where it was counted before
};

}  // namespace weir::actors
