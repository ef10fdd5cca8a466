// generate_batch.h — a file of requests through one service: results in order, whatever order they end in.
#pragma once

#include <cstddef>
#include <iosfwd>

#include "apps/local_service.h"

namespace weir::apps {

// One JSON object a line, with the fields of response.create; a result line for each on standard output, in
// order, with `id` echoed. A line that cannot be read gives an `error` result and a bad exit code at the end;
// the others still run. At most `at_once` jobs are under way.
int generate_batch(local_service& local, std::istream& requests, std::size_t at_once);

}  // namespace weir::apps
