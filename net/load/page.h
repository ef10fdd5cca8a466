// page.h — makes one HTML page of a report, without other files: distributions, gaps over time, and every
// token of some streams.
//
// Thread safety: a pure function; any thread.
#pragma once

#include <string>

#include "net/load/report.h"

namespace weir::load {

std::string as_page(const report& r);

}  // namespace weir::load
