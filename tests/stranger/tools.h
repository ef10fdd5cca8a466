// tools.h — fields of a request that let the model call tools, right, wrong and costly.
//
// Pure functions of the source of numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/stranger/json_text.h"
#include "tests/stranger/random.h"

namespace weir::stranger {

enum class tool_names { chat, messages, responses };  // whose spelling of tools

// Some tools, how they may be called, and a maximum of reasoning; one time in three as much work as can be
// asked for.
std::vector<field> tool_fields(random_source& draw, tool_names);
// Turns of a conversation, with a comma behind each, in which tools were called; as chats spell them.
std::string called_turns(random_source& draw);

// A chat template whose calls and reasoning are read.
std::string_view calling_template();

}  // namespace weir::stranger
