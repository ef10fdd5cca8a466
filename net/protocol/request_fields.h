// request_fields.h — the fields of a request that both protocols call by the same name, in one table. Its
// sampling fields are those of core/sample/params.h.
//
// Four groups of fields are read together, since one field of them changes what another may be: those of the
// chat template below, `logprobs` and `top_logprobs` (net/protocol/logprobs.h), those of a constraint
// (net/protocol/constraint_fields.h), and `dynamic_temperature` (net/protocol/dynamic_temperature.h).
//
// Types are checked here. Ranges are not: actors/make_job.h checks them once for every protocol. `null` means
// that the field is not set. Pure functions: any thread.
#pragma once

#include <string_view>
#include <vector>

#include "actors/request.h"
#include "core/grammar/rules.h"
#include "net/protocol/json.h"

namespace weir::net {

inline constexpr std::size_t max_body_depth = 64;  // most nesting of a body's JSON

// Parses the body of a POST, which has to be an object. `most_values`: most values and keys of its JSON
// (core/read_json.h). Error: invalid_param; where the body is no JSON, with the byte.
core::result<json::object> read_body(std::string_view body, std::size_t most_values);
core::error unknown_field(std::string_view name);  // invalid_param

// Stores one member in `r`. False: no field of a request has this name. Error: invalid_param with the
// field's name, if the value has the wrong type, or if the field is planned (net/protocol/planned.h) and the
// value would change something.
core::result<bool> read_request_field(std::string_view name, const json::value& v, actors::request& r);

// The same for the sampling fields, with their other names, alone. Error, too: another name of the field has
// another value.
core::result<bool> read_sampling_field(std::string_view name, const json::value& v, actors::request& r);

// Reads a list of messages: objects with a string `role` and a `content`, which is a string or a list of text
// parts, and null or missing only beside `tool_calls`. All other members go to the model's chat template,
// which is given all of this in the forms that it reads (core/text/chat/message_forms.h), older and other
// spellings in today's (net/protocol/history.h). What is left out is named in `dropped`.
core::result<core::conversation> read_messages(std::string_view name, const json::value& v,
                                               std::vector<core::grammar::warning>& dropped);
// Reads the fields that go to the chat template beside the messages: tools, tool_choice, documents,
// chat_template_kwargs, add_generation_prompt, continue_final_message. REQUIRES: `r.input` is set. Error:
// invalid_param, also for such a field where the input is no conversation.
core::result<void> read_template_fields(const json::object& o, actors::request& r);
// Reads `on_disconnect`: "continue" or "cancel". True: the latter.
core::result<bool> read_on_disconnect(std::string_view name, const json::value& v);
// Reads an array of integers that fit the type of a token id. The vocabulary is not known here.
core::result<actors::prompt_ids> read_token_ids(std::string_view name, const json::value& v);

}  // namespace weir::net
