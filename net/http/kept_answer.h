// kept_answer.h — what is kept of an answer over HTTP whose jobs outlive its client, beside the jobs: how it
// is encoded, so that GET /v1/jobs/{id}/events goes on with the same events (net/http/http_completion.cpp).
//
// Thread safety: constant; any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "net/response_terms.h"

namespace weir::net {

struct kept_answer;

// The jobs of all choices, in the order of their indices.
std::span<const core::job_id> jobs_of(const kept_answer& a);
// Null: it is no answer of /v1/responses.
terms_ptr terms_of(const kept_answer& a);
// Whether its ending is kept as a response.
bool is_response(const kept_answer& a);
// An answer of /v1/responses that did not come over HTTP.
std::shared_ptr<const kept_answer> kept_answer_of(terms_ptr terms, const core::job_id& job);

// The answer without its jobs, as another gateway of a fleet needs it to go on with the same events; null:
// there would be too many bytes. Its inverse; null: the bytes are cut. `owner`, `account`: of the terms.
std::shared_ptr<const std::string> bytes_of(const kept_answer& a);
std::shared_ptr<const kept_answer> read_answer(std::string_view bytes, std::vector<core::job_id> jobs,
                                               const actors::principal& owner,
                                               std::shared_ptr<core::memory_account> account);

}  // namespace weir::net
