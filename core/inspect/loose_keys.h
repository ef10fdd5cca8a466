// loose_keys.h — what a description says that weir does not serve: sizes and what stands out, read without
// knowing the family. A key that is missing, or has an unusual form, is left out.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "core/inspect/model_report.h"
#include "core/model/load/gguf.h"

namespace weir::core {

// Fills in architecture, wrapped, sizes and keys. `document`: a config.json.
void describe_config(const boost::json::object& document, model_report& out);
// The same of a GGUF file.
void describe_gguf(const gguf_keys& keys, model_report& out);

}  // namespace weir::core
