// stay_field.h — for how long a model is to stay after a request: `keep_alive` of Ollama's clients, and `ttl`
// of LM Studio's.
//
// Pure functions; any thread.
#pragma once

#include <chrono>
#include <string_view>

#include "core/error.h"
#include "net/protocol/json.h"

namespace weir::net {

// The longest that is told apart from «for ever».
inline constexpr std::chrono::milliseconds longest_stay_asked = std::chrono::hours(24 * 365);

// A number is seconds; a text is Ollama's, as "5m", "1h30m" or "300ms", or a number of seconds. A negative
// value is for ever, and so is one beyond longest_stay_asked. Error: invalid_param, naming the field.
core::result<std::chrono::milliseconds> read_stay(std::string_view name, const json::value& v);

}  // namespace weir::net
