// attack.h — a steady load of bad clients against a server that somebody else runs, for measurements.
//
// Thread safety: one thread, one epoll loop.
#pragma once

#include "tests/stranger/options.h"

namespace weir::stranger {

// Runs for as long as the options say, prints what was done to stdout, and returns the exit code.
int attack(const options& o);

}  // namespace weir::stranger
