// resumed_job.h — what another gateway of a fleet needs of a kept job to go on for its client
// (actors::request::resumable), and the kept job that it makes of that.
//
// Thread safety: pure functions, but for kept_job_of(): the job's shard.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "actors/job_finder.h"
#include "net/hub.h"
#include "net/kept_jobs.h"

namespace weir::net {

// Of the kept job, everything but `stream` and `owner` is used. Null: there would be too many bytes.
std::shared_ptr<const std::string> bytes_of(const kept_job& job);

// nullopt: the bytes are not from bytes_of(). The first choice of an answer over HTTP has the answer; the
// others are kept beside it.
std::optional<kept_job> kept_job_of(const server_state& all, actors::found_job found);

// Lets another gateway go on with the jobs of a request, where this process is a gateway.
void make_resumable(const hub& h, actors::request& r, const kept_job& job);
template <class Encoder>
void make_resumable(const hub& h, actors::request& r, const Encoder& encoder);

}  // namespace weir::net
