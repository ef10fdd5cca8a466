// openai.h — OpenAI's protocol without a socket: makes requests of the bodies of /v1/completions and
// /v1/chat/completions, and makes a response object or the events of a stream of a job's text.
//
// finish_reason is `stop`, `tool_calls` or `length` as in OpenAI's API. `length` also stands for a timeout
// and for repetition, which OpenAI's API does not have. A cancelled job has `cancel`.
//
// Pure functions: any thread. Events are appended to a string that the caller reuses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/job_stream.h"
#include "actors/request.h"
#include "core/grammar/rules.h"
#include "net/protocol/answer_piece.h"
#include "net/protocol/body_parts.h"
#include "net/protocol/ignored_fields.h"
#include "net/protocol/logprobs.h"

namespace weir::net::openai {

enum class dialect { completion, chat };

struct parsed_request {
  actors::request request;
  bool stream = false;
  bool include_usage = false;  // a stream ends with one more event, which has the usage
  bool return_token_ids = false;
  std::uint32_t n = 1;  // number of choices of each prompt; they share the computed pages of the prompt
  bool prompt_logprobs = false;  // each choice has those of the prompt as vLLM's field of this name
  // The answer is the prompt alone, for max_tokens 0. The job draws one token, which nobody is shown.
  bool prompt_alone = false;
  bool outlives = false;  // on_disconnect is "continue": the jobs go on when their client is lost
  ignored_fields ignored;
  std::vector<core::grammar::warning> warnings;  // of what is left out beside unknown fields

  // Of both.
  std::vector<core::grammar::warning> all_warnings() const {
    auto all = ignored.warnings();
    all.insert(all.end(), warnings.begin(), warnings.end());
    return all;
  }
};

inline constexpr std::uint32_t most_choices = 64;          // of a prompt
inline constexpr std::uint32_t most_choices_in_all = 256;  // of all prompts of a request

// Parses a body. `most_values`: most values and keys of its JSON (core/read_json.h). Error: invalid_param
// with the field's name; with `strict`, for an unknown field too. A field of OpenAI's that has no effect here
// is accepted with any value of its type.
core::result<parsed_request> parse(dialect d, std::string_view body, std::size_t most_values = SIZE_MAX,
                                   bool strict = false);

// The body of a request to tokenise.
struct text_to_tokenize {
  std::string model, text;
  bool add_special = true;  // the tokenizer adds its special tokens, such as BOS
};
core::result<text_to_tokenize> parse_tokenize(std::string_view body, std::size_t most_values = SIZE_MAX);

// The body of a request to detokenise.
struct ids_to_detokenize {
  std::string model;
  std::vector<std::int64_t> ids;
};
core::result<ids_to_detokenize> parse_detokenize(std::string_view body, std::size_t most_values = SIZE_MAX);

// The value of `finish_reason` in OpenAI's API.
std::string_view finish_reason(const actors::outcome& how);

// Id of the answer whose first choice is this job: `chatcmpl-` or `cmpl-` and the job's id.
std::string id_of(dialect d, const core::job_id& first);

// The members of a chat's message and of its deltas that have the model's reasoning: `reasoning_content`,
// `reasoning`, or both, from a text with commas between them. Error: invalid_param.
core::result<std::vector<std::string_view>> reasoning_fields(std::string_view names);

// What all parts of an answer repeat.
struct answer_head {
  std::string id;
  std::int64_t created_s = 0;      // Unix time in s
  std::string model, fingerprint;  // an empty fingerprint is null
  std::vector<std::string_view> reasoning = {"reasoning_content"};  // fields that have it; constants
  // Unknown fields of the request, and the parts of its constraint that are not enforced. A stream sends this
  // list at the beginning of its first choice.
  std::vector<core::grammar::warning> warnings;
};

// One of the answers, from a job that has ended.
struct choice {
  const actors::token_log* log = nullptr;  // never null
  actors::outcome how;
  bool with_ids = false;                       // the client asked for token ids
  std::string_view prompt = {};                // with `echo`: its text, which stands before the answer's
  bool prompt_alone = false;                   // nothing of the answer is shown
  std::optional<logprobs_part> logprobs = {};  // nullopt: the client did not ask for them
  const core::tokenizer* tokenizer = nullptr;  // of the model; not null if how.prompt_logprobs is set
  bool prompt_logprobs = false;                // the client asked for those of how
  std::optional<scored_prompt> scored = {};    // with `echo` and logprobs: the prompt, before `logprobs`
};

// The body of an answer that is not streamed. `choices` are in the order of their indices: the `n` choices of
// the first prompt, then those of the next. The usage counts each prompt once. What `choices` refer to must
// outlive the body.
body_parts response_body(dialect d, const answer_head& head, std::span<const choice> choices,
                         std::uint32_t n = 1);

// The usage of all choices together: the prompt of the first of each `n`, and the outputs of all.
actors::outcome usage_of(std::span<const actors::outcome> choices, std::uint32_t n);

// Writes the server-sent events of one streamed answer, which may have several choices.
class event_writer {
 public:
  // `n`: choices of each prompt.
  event_writer(dialect d, const answer_head& head, bool include_usage, std::uint32_t n = 1);

  // Begins a choice. In a chat this appends an event with the role, otherwise one with the text of the
  // prompt, or nothing if that is empty and there are no warnings.
  void open(std::string& out, std::uint32_t index, std::string_view prompt = {}) const;
  // Appends a piece of a choice, with an event for each of its parts. `finish`: the finish_reason of the last
  // piece, empty for all others. `token_ids`: empty if the client did not ask for them. `logprobs`: null if
  // it did not. The last event has these three.
  void piece(std::string& out, std::uint32_t index, const answer_piece& news,
             std::span<const core::token_id> token_ids, std::string_view finish,
             const logprobs_part* logprobs = nullptr) const;
  // Appends a piece of the prompt that a choice repeats.
  void prompt_piece(std::string& out, std::uint32_t index, std::string_view text) const;
  // Appends the usage if the client asked for it, otherwise nothing.
  void usage(std::string& out, const actors::outcome& how) const;
  // Appends an event with the error object of a response. Clients take it for the end of the answer.
  void error(std::string& out, const core::error& e) const;
  void close(std::string& out) const;       // appends `data: [DONE]`
  void keep_alive(std::string& out) const;  // appends a comment, which clients do not see
  // Appends what follows the last piece of all choices: usage() of all together, and close().
  void end(std::string& out, std::span<const actors::outcome> choices) const;
  // Appends what ends an answer that has failed: error() and close().
  void fail(std::string& out, const core::error& e) const;
  // The last piece's `finish`.
  std::string_view finish(const actors::outcome& how) const { return finish_reason(how); }

 private:
  void event(std::string& out, std::uint32_t index, const actors::part_piece& part,
             std::span<const core::answer_call> calls, const logprobs_part* logprobs) const;
  dialect dialect_;
  bool include_usage_;
  std::uint32_t n_;
  std::vector<std::string_view> reasoning_;
  std::string head_;  // the start of every event: `data: {"id":…,"model":…,"choices":[`
  std::vector<core::grammar::warning> warnings_;
};

}  // namespace weir::net::openai
