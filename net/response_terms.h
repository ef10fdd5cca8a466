// response_terms.h — what is settled about a response before its job runs: what the response object repeats
// of the request, and what is kept of the request beside the answer.
//
// Thread safety: constant once made; any thread. The functions below: the shard of the job.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/account.h"
#include "net/job_feed.h"
#include "net/protocol/responses.h"
#include "net/response_intake.h"
#include "net/response_store.h"

namespace weir::net {

std::int64_t unix_seconds();

struct response_terms {
  std::int64_t created_s = 0;  // Unix time in s
  std::string model;           // named by the client; for a job that was cancelled before a model took it
  std::string echo;            // as in responses::parsed_request
  std::vector<responses::flat_name> names;
  std::vector<core::grammar::warning> ignored;
  bool stored = false;   // the response is kept once its job has ended
  std::string items;     // of the request, as in stored_response
  std::string previous;  // as in stored_response
  actors::principal owner;
  core::memory_hold memory;  // of all this

  responses::response_head head_of(const admitted_job& job) const;
  // When a job that ended like this did so, in Unix time: each answer about one response says the same.
  std::int64_t completed_s(const actors::outcome& how) const noexcept;
  // REQUIRES: the job has ended.
  std::string object_of(const actors::job_stream& job, responses::output_place* output = nullptr) const;
};
using terms_ptr = std::shared_ptr<const response_terms>;

// The terms of a request, whose texts are moved out of it; the request itself stays. Error: overloaded, where
// the account has no room for them.
core::result<terms_ptr> terms_of(read_response& asked, const actors::principal& owner,
                                 std::shared_ptr<core::memory_account> account);

// The response of a job that has ended and that a model had taken.
stored_ptr stored_of(const response_terms& terms, const actors::job_stream& job);

// Gives the response to the store when the job has ended, unless its stream is gone by then. What is sent of
// the ending afterwards finds the response kept.
void keep_when_ended(std::shared_ptr<response_desk> desk, terms_ptr terms,
                     const std::shared_ptr<actors::job_stream>& job);

}  // namespace weir::net
