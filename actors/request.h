// request.h — what a client asked, once its bytes are understood: the text pool makes a job of it.
//
// Plain data, made by net's parsers (or by an embedding program) and moved along. A field that is not set
// takes the model's default (generation_config.json), else the neutral one. Ranges are checked when the
// request becomes a job, so that every way in gives the same errors with the same names.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/text/chat_template.h"
#include "core/token_sink.h"

namespace weir::actors {

using prompt_ids = std::vector<core::token_id>;
using prompt_messages = std::vector<core::message>;

struct request {
  std::string model;                                             // empty: the only one served
  std::variant<std::string, prompt_messages, prompt_ids> input;  // a string is a raw prompt
  std::string input_param = "input";                             // what the client calls it, for errors

  bool add_special_tokens = true;
  bool skip_special_tokens = true;
  std::optional<std::int64_t> max_tokens, min_tokens;            // as sent: range errors are found later
  std::optional<std::int64_t> max_repeats;  // a loop of so many ends the job; none: no loop does
  bool ignore_eos = false;
  std::vector<std::int64_t> stop_token_ids;
  std::vector<std::string> stop;
  std::optional<double> temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty;
  std::optional<std::int64_t> top_k;
  std::optional<std::uint64_t> seed;                             // none: drawn at random
  std::vector<std::pair<std::int64_t, double>> logit_bias;
  // shares computed prefixes within the salt alone
  std::string cache_salt;
  int priority = 0;
  // whose (net/api_keys.h): turns, jobs and prefixes hang on it
  std::uint64_t key = 0;
  std::optional<std::chrono::milliseconds> deadline;             // from the moment the request was read
};

}  // namespace weir::actors
