// answer.h — the result of one job of `weir generate` as JSON, for --json and for each line of --batch.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "actors/job_stream.h"

namespace weir::apps {

// The result of a job. REQUIRES: the stream is done or refused.
boost::json::object answer_of(const actors::job_stream& stream);
boost::json::object answer_of(const core::error& e);

}  // namespace weir::apps
