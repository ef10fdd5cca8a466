// generate_batch.h — runs a file of requests on one service, and writes the results in the order of the file.
#pragma once

#include <cstddef>
#include <iosfwd>

#include "apps/local_service.h"

namespace weir::apps {

// Each line of `requests` is a JSON object with the fields of response.create. In the place of `input` a line
// may have `prompt` (a string or token ids) or `messages`. For each line, one line with the result and the
// request's `id` goes to standard output, in the order of the requests. A result has `logprobs`, as weir.v1
// writes them, if its line asked for them, and the names of unknown fields as `ignored`. A line that cannot
// be read gives a result with `error` and a bad exit code at the end; the other lines still run. At most
// `at_once` jobs run or wait at the same time. Returns the exit code.
int generate_batch(local_service& local, std::istream& requests, std::size_t at_once);

}  // namespace weir::apps
