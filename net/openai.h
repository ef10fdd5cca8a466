// openai.h — OpenAI's dialect without a socket: bodies of /v1/completions and /v1/chat/completions become
// requests, and a job's text becomes a response object or the events of a stream.
//
// finish_reason is theirs where they have a word: stop; length (also for timeout and repetition). A job that
// somebody cancelled says cancel: only who cancels it sees that.
//
// Pure functions: any thread. Chunks are written by hand into a string that the caller keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/job_stream.h"
#include "actors/request.h"

namespace weir::net::openai {

inline constexpr std::size_t max_depth = 64;

enum class dialect { completion, chat };

struct parsed_request {
  actors::request request;
  bool stream = false;
  bool include_usage = false;  // in a stream: one more event with the usage
  bool return_token_ids = false;
  std::uint32_t n = 1;  // choices; they share what is computed of the prompt
};

inline constexpr std::uint32_t most_choices = 64;

// `most_values`: of the body's JSON, keys counted (core/read_json.h).
// An unknown field is invalid_param naming it, as OpenAI does; one of theirs without effect here is accepted.
core::result<parsed_request> parse(dialect d, std::string_view body, std::size_t most_values = SIZE_MAX);

struct text_to_tokenize {
  std::string model, text;
  bool add_special = true;
};
core::result<text_to_tokenize> parse_tokenize(std::string_view body, std::size_t most_values = SIZE_MAX);

struct ids_to_detokenize {
  std::string model;
  std::vector<std::int64_t> ids;
};
core::result<ids_to_detokenize> parse_detokenize(std::string_view body, std::size_t most_values = SIZE_MAX);

std::string_view finish_reason(core::finish_reason r);

// One answer of those that were asked for, by a job that has ended.
struct choice {
  std::string text;
  std::optional<std::vector<core::token_id>> token_ids;
  actors::outcome how;
};

// The whole answer, in order of the choices' indices. The prompt is counted once.
std::string response_body(dialect d, std::string_view id, std::int64_t created_s, std::string_view model,
                          std::span<const choice> choices);

// What all of them used: the prompt once, as the first one found it, and every output.
actors::outcome usage_of(std::span<const actors::outcome> choices);

// Writes the server-sent events of one streamed answer, which may have several choices.
class event_writer {
 public:
  event_writer(dialect d, std::string_view id, std::int64_t created_s, std::string_view model,
               bool include_usage);

  // Chat begins each choice with the role; completions with nothing.
  void open(std::string& out, std::uint32_t index) const;
  // `finish` is empty but for the choice's last piece. `token_ids` is empty where they were not asked for.
  void piece(std::string& out, std::uint32_t index, std::string_view text,
             std::span<const core::token_id> token_ids, std::string_view finish) const;
  void usage(std::string& out, const actors::outcome& how) const;  // nothing unless it was asked for
  void error(std::string& out, const core::error& e) const;
  void close(std::string& out) const;  // data: [DONE]

 private:
  dialect dialect_;
  bool include_usage_;
  std::string head_;  // `data: {"id":…,"model":…,"choices":[`
};

}  // namespace weir::net::openai
