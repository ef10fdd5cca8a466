// request_fields.h — the fields of a request that both protocols call by the same name, in one table. Its
// sampling fields are those of core/sample/params.h.
//
// Types are checked here. Ranges are not: actors/make_job.h checks them once for every protocol. `null` means
// that the field is not set. Pure functions: any thread.
#pragma once

#include <string_view>

#include "actors/request.h"
#include "net/json.h"

namespace weir::net {

// Stores one member in `r`. False: no field of a request has this name. Error: invalid_param with the
// field's name, if the value has the wrong type, or if the field is planned (net/planned.h) and the value
// would change something.
core::result<bool> read_request_field(std::string_view name, const json::value& v, actors::request& r);

// Reads [{role, content}], where content is a string or a list of text parts.
core::result<actors::prompt_messages> read_messages(std::string_view name, const json::value& v);
// Reads an array of integers that fit the type of a token id. The vocabulary is not known here.
core::result<actors::prompt_ids> read_token_ids(std::string_view name, const json::value& v);

}  // namespace weir::net
