// request_fields.h — the fields of a request that every way in calls by the same name: one table for both
// protocols. Its sampling fields are those of core/sample/params.h.
//
// Types are strict, ranges are not looked at here: actors judges them once for every way in. `null` is «not
// set». Pure functions: any thread.
#pragma once

#include <string_view>

#include "actors/request.h"
#include "net/json.h"

namespace weir::net {

enum class field_use {
  taken,    // it is in the request now
  neutral,  // a field that is not there yet, with the value that changes nothing
  unknown,  // no field of a request
};

// Puts one member into `r`. A known field of another type, or one that is not there yet with a value that
// would matter, is invalid_param naming it.
core::result<field_use> read_request_field(std::string_view name, const json::value& v, actors::request& r);

// True for the value that means the same as leaving the field out. `neutral` is JSON text.
bool is_neutral(const json::value& v, std::string_view neutral);
core::error not_supported_yet(std::string_view name);

// [{role, content}], content a string or text parts.
core::result<actors::prompt_messages> read_messages(std::string_view name, const json::value& v);
// An array of integers that fit a token id (the vocabulary is not known here).
core::result<actors::prompt_ids> read_token_ids(std::string_view name, const json::value& v);

}  // namespace weir::net
