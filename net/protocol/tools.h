// tools.h — the tools of a request and how they may be called, as OpenAI's chat completions and responses and
// Anthropic's messages spell them (docs/tools.md).
//
// Each tool becomes a definition for the reader and the grammar of answers, and, for the chat template, an
// object in the form of chat completions. A custom tool is shown to the model as a function with one string,
// `input`.
//
// Pure functions: any thread. Errors: invalid_param with the field's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/request.h"
#include "core/grammar/rules.h"
#include "net/protocol/json.h"

namespace weir::net {

inline constexpr std::size_t most_tools = 2000;
inline constexpr std::size_t longest_tool_name = 128;  // bytes
// Bounds of the schemas of tools, which count beside those of the body.
inline constexpr std::size_t deepest_schema = 64;
inline constexpr std::size_t most_schema_values = 1 << 18;  // values and keys of all tools of a request

enum class tool_dialect {
  chat,       // also weir.v1: {"type":"function","function":{…}}
  responses,  // {"type":"function","name":…}
  messages,   // Anthropic's: {"name":…,"input_schema":…}
};

// Reads the members `tools`, `tool_choice` and `parallel_tool_calls` of a body into `r.tools`, and shows the
// tools to the template of `r.input`, unless no call may be written. Tools that a provider runs itself
// (web_search and its kin) are left out, with a warning in `dropped`. REQUIRES: `r.input` is set.
core::result<void> read_tools(const json::object& body, tool_dialect d, actors::request& r,
                              std::vector<core::grammar::warning>& dropped);

}  // namespace weir::net
