// logprobs.h — logprobs on the wire: the fields by which a client asks for them, and the JSON of each
// protocol.
//
// The logprobs of a job lie in its log (actors/token_log.h). Every protocol shows a token as text and, where
// its bytes are not UTF-8 by themselves, as bytes.
//
// Pure functions: any thread. JSON is appended to a string that the caller reuses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "actors/request.h"
#include "actors/token_log.h"
#include "core/text/tokenizer/tokenizer.h"
#include "net/protocol/body_parts.h"
#include "net/protocol/json.h"

namespace weir::net {

// How a protocol spells the question.
enum class logprobs_form {
  flag,    // OpenAI's chat: `logprobs` true or false, and `top_logprobs`, a number
  number,  // OpenAI's completions: `logprobs`, a number
  either   // weir.v1: all of these
};

// Reads `logprobs` and `top_logprobs` into request::top_logprobs. make_job.h checks the number's range.
// Error: invalid_param with the field's name, for a wrong type and for fields that do not go together.
core::result<void> read_logprobs_fields(const json::object& o, logprobs_form form, actors::request& r);

// Consecutive tokens of a job that asked for logprobs, from its log or from a piece of it.
struct logprobs_part {
  const actors::token_log* log = nullptr;  // has_logprobs()
  const core::tokenizer* tokenizer = nullptr;
  std::uint32_t from = 0, to = 0;  // positions in `log`; `to` is one past the last
  std::uint64_t characters = 0;    // Unicode characters of the job's text before the first of them
};

// Most tokens of one frame, so that it stays near 64 KiB. At least 1.
std::uint32_t most_tokens_of_a_frame(const actors::token_log& log);

// weir.v1: [{"id","token","logprob","bytes"?,"top"?:[{"id","token","logprob","bytes"?},…]},…]
void append_weir_logprobs(std::string& out, const logprobs_part& p);

// OpenAI's chat: {"content":[{"token","logprob","bytes","top_logprobs":[{"token","logprob","bytes"},…]},…],
// "refusal":null}. null where there are no tokens.
void append_chat_logprobs(std::string& out, const logprobs_part& p);

// OpenAI's completions: {"tokens","token_logprobs","top_logprobs":[{token:logprob,…},…],"text_offset"}. A
// token that is not UTF-8 is spelled bytes:\xe2\x80. Of two tokens with the same spelling, only the likelier
// is listed. Offsets count Unicode characters. null where there are no tokens.
void append_completion_logprobs(std::string& out, const logprobs_part& p);

// A prompt whose tokens have logprobs.
struct scored_prompt {
  core::token_id first = 0;                    // its first token, which has no logprob
  std::span<const core::scored_token> tokens;  // those behind it
  std::uint32_t top = 0;                       // likeliest tokens that are told of each
  std::string_view text;                       // as it stands before the answer
};

// The two above as parts of a body. The log and the tokenizer must outlive the body, and so must what
// `prompt` refers to. `prompt`, for `echo`: its tokens come before those of the answer, which may have none.
// Its first token has null as its logprob and as its likeliest tokens. Offsets do not count a first token
// that is not in the text, such as a BOS that the tokenizer added.
void add_chat_logprobs(body_parts& to, const logprobs_part& p);
void add_completion_logprobs(body_parts& to, const logprobs_part& p,
                             const std::optional<scored_prompt>& prompt = {});

// vLLM's prompt_logprobs, as the inside of a list behind the null of the prompt's first token: for each token
// its own entry and those of the likeliest, {"id":{"logprob","rank","decoded_token"},…}. Both must outlive
// the body.
void add_prompt_logprobs(body_parts& to, std::span<const core::scored_token> tokens,
                         const core::tokenizer& t);

// Unicode characters of a text in UTF-8.
std::uint64_t characters_of(std::string_view utf8);

}  // namespace weir::net
