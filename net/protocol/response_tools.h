// response_tools.h — the tools of a body of the Responses API: namespaces become names that are one word, and
// tools that only OpenAI's servers carry out are left out.
//
// Pure functions: any thread.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "actors/request.h"
#include "core/grammar/rules.h"

namespace weir::net::responses {

inline constexpr std::size_t most_tools = 2000;  // those inside namespaces count

// A tool of a namespace, as the model knows it and as the client does.
struct flat_name {
  std::string flat, space, name;
};

// The flat name of a tool of a namespace, where no tool of the list has it.
std::string flat_name_of(std::string_view space, std::string_view name);
// The name that the model knows for a call of the client's: of a tool in `names`, else flat_name_of(). An empty
// `space`: the name itself.
std::string model_name(const std::vector<flat_name>& names, std::string_view space, std::string_view name);

struct read_tools {
  core::tool_wishes wishes;
  boost::json::array shown;      // what the chat template is given, in the form of chat completions
  boost::json::array kept;       // the tools that were not left out, as they were sent
  std::vector<flat_name> names;  // of tools in namespaces
  std::vector<core::grammar::warning> warnings;  // of tools that are left out
};

// Reads tools, tool_choice and parallel_tool_calls. Error: invalid_param with the field's name.
core::result<read_tools> read_response_tools(const boost::json::object& body);

}  // namespace weir::net::responses
