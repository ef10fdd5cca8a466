// request_fields.h — the fields of a request that both protocols call by the same name, in one table.
//
// Types are checked here. Ranges are not: actors/make_job.h checks them once for every protocol. `null` means
// that the field is not set. Pure functions: any thread.
#pragma once

#include <string_view>

#include "actors/request.h"
#include "net/json.h"

namespace weir::net {

enum class field_use {
  taken,    // the value is in the request now
  neutral,  // the value changes nothing: null, or the neutral value of a field that is not supported yet
  unknown,  // the name is not in the table
};

// Stores one member in `r`. Error: invalid_param with the field's name, if the value has the wrong type, or
// if the field is not supported yet and the value would change something.
core::result<field_use> read_request_field(std::string_view name, const json::value& v, actors::request& r);

// True if `v` means the same as no field at all: it is null, or equal to the JSON text `neutral`.
bool is_neutral(const json::value& v, std::string_view neutral);
core::error not_supported_yet(std::string_view name);

// Reads [{role, content}], where content is a string or a list of text parts.
core::result<actors::prompt_messages> read_messages(std::string_view name, const json::value& v);
// Reads an array of integers that fit the type of a token id. The vocabulary is not known here.
core::result<actors::prompt_ids> read_token_ids(std::string_view name, const json::value& v);

}  // namespace weir::net
