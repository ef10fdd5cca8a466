// request_fields.h — the fields of a request that every way in calls by the same name: one table for both
// protocols.
//
// Types are strict, ranges are not looked at here: actors judges them once for every way in. `null` is «not
// set». Pure functions: any thread.
#pragma once

#include <string_view>

#include "actors/request.h"
#include "net/json.h"

namespace weir::net {

// Puts one member into `r`. False: no field of a request has this name. A known field of another type, or a
// planned one (net/planned.h) with a value that would matter, is invalid_param naming it.
core::result<bool> read_request_field(std::string_view name, const json::value& v, actors::request& r);

// [{role, content}], content a string or text parts.
core::result<actors::prompt_messages> read_messages(std::string_view name, const json::value& v);
// An array of integers that fit a token id (the vocabulary is not known here).
core::result<actors::prompt_ids> read_token_ids(std::string_view name, const json::value& v);

}  // namespace weir::net
