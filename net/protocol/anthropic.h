// anthropic.h — Anthropic's Messages API without a socket: makes requests of the bodies of /v1/messages and
// /v1/messages/count_tokens, and makes a message object or the events of a stream of a job's text.
//
// stop_reason is `end_turn`, `tool_use`, `stop_sequence`, `max_tokens` or `model_context_window_exceeded`, as
// in Anthropic's API. `max_tokens` also stands for a timeout and for repetition, which that API does not
// have. A cancelled job has `cancel`.
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
#include "net/protocol/answer_piece.h"
#include "net/protocol/body_parts.h"
#include "net/protocol/ignored_fields.h"
#include "net/protocol/logprobs.h"

namespace weir::net::anthropic {

enum class route { messages, count_tokens };

struct parsed_request {
  actors::request request;
  bool stream = false;
  std::optional<bool> thinks;  // whether `thinking` asks for it
  bool outlives = false;       // as in openai::parsed_request
  ignored_fields ignored;
  std::vector<core::grammar::warning> warnings;  // of what is left out beside unknown fields

  // Of both.
  std::vector<core::grammar::warning> all_warnings() const {
    auto all = ignored.warnings();
    all.insert(all.end(), warnings.begin(), warnings.end());
    return all;
  }
};

// Parses a body. `most_values`: most values and keys of its JSON (core/read_json.h). /v1/messages requires
// max_tokens. /v1/messages/count_tokens takes the same fields and requires `messages` alone. Error:
// invalid_param with the field's name; with `strict`, for an unknown field too.
core::result<parsed_request> parse(route to, std::string_view body, std::size_t most_values = SIZE_MAX,
                                   bool strict = false);

// What an answer has to know of its request.
struct limits {
  std::int64_t max_tokens = 0;
  std::vector<std::string> stop_sequences;
};

// The value of `stop_reason`. `max_tokens`: that of the request.
std::string_view stop_reason(const actors::outcome& how, std::int64_t max_tokens);

// What is the same in every part of an answer.
struct identity {
  std::string id;          // of the message
  std::string model;       // that answers
  std::string request_id;  // for errors
  std::vector<core::grammar::warning> warnings;  // of the message
};

// The id of the message that a job writes: msg_ and the job's id.
std::string message_id(const core::job_id& job);

// The body of an answer that is not streamed. `log` must outlive the body.
body_parts response_body(const identity& who, const actors::token_log& log, const actors::outcome& how,
                         const limits& asked);

// The body of an answer to count_tokens.
std::string count_body(std::uint32_t input_tokens, std::span<const core::grammar::warning> warnings = {});

// Whether a path is one of Anthropic's, whose errors have Anthropic's shape.
bool is_path(std::string_view path);

// {"type":"error","error":{type,message},"request_id"}. The type is the one of the status.
std::string error_body(unsigned status, std::string_view message, std::string_view request_id);

// Writes the server-sent events of one streamed answer, with the members of openai::event_writer.
class event_writer {
 public:
  // `prompt_tokens`: all tokens of the prompt. How many of them are cached is known at the end only.
  event_writer(identity who, std::uint32_t prompt_tokens, limits asked);

  // Appends message_start and ping. A message is one answer: `index` is 0. It never repeats its prompt.
  void open(std::string& out, std::uint32_t index, std::string_view prompt = {}) const;
  // Appends a piece of the answer: content_block_start where a part begins, and a delta where it has text;
  // the block before ends where the next one begins. Messages have neither token ids nor logprobs.
  void piece(std::string& out, std::uint32_t index, const answer_piece& news,
             std::span<const core::token_id> token_ids, std::string_view finish,
             const logprobs_part* logprobs = nullptr) const;
  void prompt_piece(std::string&, std::uint32_t, std::string_view) const {}
  std::string_view finish(const actors::outcome& how) const { return stop_reason(how, asked_.max_tokens); }
  // Appends an event of an error, after which there is nothing.
  void fail(std::string& out, const core::error& e) const;
  void keep_alive(std::string& out) const;  // appends ping, which clients do not show
  // Appends content_block_stop, message_delta with the stop reason and the usage, and message_stop; nothing
  // after an error. REQUIRES: one ending.
  void end(std::string& out, std::span<const actors::outcome> endings) const;

 private:
  identity who_;
  std::uint32_t prompt_tokens_;
  limits asked_;
};

}  // namespace weir::net::anthropic
