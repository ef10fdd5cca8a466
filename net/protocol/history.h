// history.h — the messages of chat completions in the members that chat templates read.
//
// Clients spell one history in several ways. Templates know `tool_calls` with functions, messages of the role
// `tool`, and reasoning as a text.
//
// Pure functions: any thread.
#pragma once

#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/grammar/rules.h"
#include "net/protocol/json.h"

namespace weir::net {

// Changes a list of messages, `name` in errors and warnings:
//   - `function_call` of an assistant's message becomes a call in `tool_calls`, and a message of the role
//     `function` the result of that call. Both have an id, which is made of the message's number.
//   - A call of a custom tool becomes the call of a function with one text, `input`.
//   - The texts of `reasoning_details` become `reasoning_content`, where the message has no reasoning yet.
//   - Parts of a tool's result that are no text are left out, with a warning in `dropped`.
// What is not a message stays as it is. Error: invalid_param with `name`.
core::result<void> modernise_messages(std::string_view name, json::array& messages,
                                      std::vector<core::grammar::warning>& dropped);

}  // namespace weir::net
