// page.h — a report as one page that needs nothing else: distributions, gaps over time, and every token of
// some streams. Pure: any thread.
#pragma once

#include <string>

#include "net/load/report.h"

namespace weir::load {

std::string as_page(const report& r);

}  // namespace weir::load
