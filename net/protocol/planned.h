// planned.h — fields that are planned and that the server does not have yet, and how each of them is refused:
// one table. A row is deleted when what it names is built.
//
// Pure functions and constant data: any thread.
#pragma once

#include <string_view>

#include "net/protocol/json.h"

namespace weir::net {

// Where a client uses a name. The refusal is invalid_param.
enum class place {
  request_field,    // of response.create and of OpenAI's bodies
  create_field,     // of response.create alone
  openai_field,     // of OpenAI's bodies alone
  anthropic_field,  // of Anthropic's bodies, whatever other bodies do with the name
  stream_option,    // member of stream_options in OpenAI's bodies
  message_member,   // of a message of the prompt
};

struct planned_name {
  place where;
  std::string_view name;
  // JSON texts of the values that mean the same as leaving the field out, as null always does. Every other
  // value is refused.
  std::string_view neutral = "null", also_neutral = "null";
  // Values that are refused for what they are, and not because the field is planned.
  enum class value {
    any,    // none
    count,  // integers below 1
  } kind = value::any;

  bool asks_nothing(const json::value& v) const;
};

inline constexpr planned_name planned_names[] = {
    {place::create_field, "n", "1", "1", planned_name::value::count},  // OpenAI's bodies have it
    {place::create_field, "best_of", "1", "1", planned_name::value::count},
    {place::create_field, "prompt_logprobs"},  // OpenAI's bodies have it
    {place::openai_field, "suffix", R"("")"},
    {place::openai_field, "store", "false"},
    {place::openai_field, "length_penalty", "1"},
    {place::openai_field, "use_beam_search", "false"},
    {place::openai_field, "num_beams", "1", "0"},
    {place::openai_field, "early_stopping", "false"},
    {place::openai_field, "spaces_between_special_tokens", "true"},
    {place::openai_field, "ban_eos_token", "false"},
    {place::request_field, "guidance_scale", "1"},
    {place::request_field, "cfg_scale", "1"},
    {place::request_field, "negative_prompt", R"("")"},
    {place::request_field, "negative_prompt_ids", "[]"},
    {place::request_field, "logits_processors", "[]"},
    {place::request_field, "logits_processor", "[]"},
    {place::request_field, "custom_logit_processor"},
    {place::openai_field, "functions", "[]"},
    {place::openai_field, "function_call", R"("none")"},
    {place::openai_field, "modalities", R"(["text"])"},
    {place::openai_field, "audio"},
    {place::openai_field, "prediction"},
    {place::openai_field, "verbosity", R"("medium")"},
    {place::openai_field, "web_search_options"},
    {place::anthropic_field, "container"},
    {place::anthropic_field, "mcp_servers", "[]"},
    {place::anthropic_field, "diagnostics"},
    {place::anthropic_field, "inference_geo"},
    {place::anthropic_field, "speed", R"("standard")"},
    {place::anthropic_field, "logprobs", "false"},
    {place::anthropic_field, "top_logprobs", "0"},
    {place::anthropic_field, "prompt_logprobs", "0"},
    {place::stream_option, "include_obfuscation", "false"},
    {place::stream_option, "continuous_usage_stats", "false"},
    {place::message_member, "function_call"},
    {place::message_member, "refusal"},
    {place::message_member, "audio"},
    {place::message_member, "annotations", "[]"},
};

// nullptr: the name is not planned there.
const planned_name* find_planned(place where, std::string_view name) noexcept;

// The refusal of a field's value, unless the value is neutral.
core::result<void> judge_planned(const planned_name& field, const json::value& v);

// invalid_param. The message is the same for every place.
core::error not_supported_yet(std::string_view name);

// True for null and for the value that `neutral` is the JSON text of.
bool is_neutral(const json::value& v, std::string_view neutral);

}  // namespace weir::net
