// attack.h — a steady load of bad clients against a server that somebody else runs, for measurements.
//
// Thread safety: one thread, one epoll loop.
#pragma once

#include "tests/stranger/options.h"

namespace weir::stranger {

// For as long as options say; what was done goes to stdout. The exit code.
int attack(const options& o);

}  // namespace weir::stranger
