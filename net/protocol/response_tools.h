// response_tools.h — the tools of a body of the Responses API whose namespaces are taken apart: a tool of a
// namespace gets a name of its own, by which the model knows it.
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

// A tool of a namespace, as the model knows it and as the client does.
struct flat_name {
  std::string flat, space, name;
};

// NAMESPACE__NAME: the name of a tool of a namespace, where no other tool of the request has it.
std::string flat_name_of(std::string_view space, std::string_view name);
// The name that the model knows for a call of the client's: of a tool in `names`, else flat_name_of(). An
// empty `space`: the name itself.
std::string model_name(const std::vector<flat_name>& names, std::string_view space, std::string_view name);

// Reads tools, tool_choice and parallel_tool_calls as read_tools() (tools.h) does, with the tools of
// namespaces in their places, and adds these to `names`. REQUIRES: `r.input` is set. Error: invalid_param
// with the field's name.
core::result<void> read_response_tools(const boost::json::object& body, actors::request& r,
                                       std::vector<flat_name>& names,
                                       std::vector<core::grammar::warning>& dropped);

}  // namespace weir::net::responses
