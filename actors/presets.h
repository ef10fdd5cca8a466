// presets.h — sampling fields under a name, which requests take by that name.
//
// Of each field the request's own value comes first, then the preset's, then the model's default.
//
// Thread safety: plain data and a pure function; any thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/request.h"
#include "core/error.h"
#include "core/sample/params.h"

namespace weir::actors {

// The fields as in a request.
struct sampling_preset : core::sampling_request {
  std::optional<std::vector<std::string>> banned_strings;
  std::optional<bool> token_healing;
};

using sampling_presets = std::map<std::string, sampling_preset, std::less<>>;

// Sets each sampling field that the request neither sets nor leaves out, as the preset that it names has it.
// A request that names none stays as it is. Error: invalid_param, `preset`, with the names that there are.
core::result<void> take_preset(request& r, const sampling_presets& all);

}  // namespace weir::actors
