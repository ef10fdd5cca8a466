// response_encoder.h — encodes answers of /v1/responses, as the encoders of http_completion.cpp do those
// of other routes.
//
// Thread safety: the connection's shard.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http/http_answer.h"
#include "net/http/reply.h"
#include "net/kept_jobs.h"
#include "net/response_terms.h"

namespace weir::net {

// The refusal of a request.
reply response_refusal(const core::error& e);

// The events of a response. Their numbers need the log from its beginning.
class response_events {
 public:
  response_events(terms_ptr terms, const admitted_job& job, std::int64_t after)
      : terms_(std::move(terms)), writer_(terms_->head_of(job)) {
    writer_.go_on_after(after);
  }

  void open(std::string& out, std::uint32_t, std::string_view) { writer_.open(out); }
  void prompt_piece(std::string&, std::uint32_t, std::string_view) const {}
  void piece(std::string& out, const actors::token_log& log, std::uint32_t from, std::uint32_t to) {
    log_ = &log;
    writer_.piece(out, log, from, to);
  }
  void end(std::string& out, std::span<const actors::outcome> endings) {
    writer_.end(out, log_ ? *log_ : nothing_, endings.front(), terms_->completed_s(endings.front()));
  }
  // A response that goes on at another gateway has not failed.
  void fail(std::string& out, const core::error& e) {
    if (goes_on_elsewhere(e)) return writer_.leave(out, e);
    actors::outcome how;
    how.reason = core::finish_reason::error;
    how.fault = e;
    end(out, std::span(&how, 1));
  }
  void keep_alive(std::string& out) const { writer_.keep_alive(out); }

 private:
  terms_ptr terms_;
  responses::event_writer writer_;
  const actors::token_log* log_ = nullptr;  // once a piece was given
  actors::token_log nothing_;
};

struct responses_encoder {
  static constexpr bool with_ids = false;
  terms_ptr terms;
  std::int64_t after = -1;  // the number of the last event that the client has

  reply whole(const std::vector<std::shared_ptr<actors::job_stream>>& all) const {
    return json_reply(terms->object_of(*all.front()));
  }
  // The answer about a job that runs.
  reply unfinished(const actors::job_stream& job) const {
    return json_reply(responses::unfinished_object(terms->head_of(admitted_job::of(job)), "in_progress"));
  }
  response_events events(const admitted_job& first) const { return {terms, first, after}; }
};

}  // namespace weir::net
