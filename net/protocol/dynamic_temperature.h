// dynamic_temperature.h — text-generation-webui's way to ask for dynatemp_range, which SillyTavern sends,
// too.
//
// `dynamic_temperature` true: the temperature lies between `dynatemp_low` and `dynatemp_high`. Their middle
// replaces `temperature`, half their distance is dynatemp_range. False, or missing: the two ask for nothing.
//
// Pure functions: any thread.
#pragma once

#include <string_view>

#include "actors/request.h"
#include "net/protocol/json.h"

namespace weir::net {

// Whether read_dynamic_temperature() reads this field.
bool is_dynamic_temperature(std::string_view name);

// To be called once the sampling fields of the body are read. Error: invalid_param, also where the body has
// another dynatemp_range.
core::result<void> read_dynamic_temperature(const json::object& body, actors::request& r);

}  // namespace weir::net
