// report_text.h — what is said of a model's files, as `weir inspect` writes it: lines for people, and JSON.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/inspect/model_report.h"

namespace weir::core {

// A label and a text a line, aligned; long texts go on in lines without a label. Control characters of the
// files are shown as escapes.
std::vector<std::string> report_lines(const model_report& m);

// An object on one line; docs/commands.md has its members. In text that is not UTF-8, U+FFFD stands for
// bytes.
std::string report_json(const model_report& m);

}  // namespace weir::core
