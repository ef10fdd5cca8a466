// sampling_options.h — the sampling fields of a request as options: --top-k for top_k, and so on.
#pragma once

#include <boost/json/object.hpp>

#include "core/sample/params.h"

namespace CLI {
class App;
}

namespace weir::apps {

// Adds an option for each field that has one (core/sample/params.h).
void add_sampling(CLI::App& app, core::sampling_request& r);

// The numbers that are set, as fields of a request.
boost::json::object sampling_fields(const core::sampling_request& r);

}  // namespace weir::apps
