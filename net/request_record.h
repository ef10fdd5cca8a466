// request_record.h — what the log says of a request once all of its jobs have ended: one line, without a word
// of the prompt, the answer or the client's header.
//
// A request that made no job has no record: what is refused before is counted by its code
// (weir_requests_rejected_total), so that strangers cannot fill a log.
//
// Thread safety: plain data and pure functions; any thread. begin_record()'s witness is used on one shard.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/hub.h"

namespace weir::net {

struct request_record {
  std::string id;          // of its first job
  std::string request_id;  // x-request-id of the answer, or of the WebSocket's handshake
  std::string key;         // name of the client's key; empty: the server has no keys
  std::string_view route;  // a constant: a path, or weir.v1
  std::string model;       // that took it; empty: none did
  std::uint32_t choices = 0;
  std::uint64_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;  // of all choices together
  // From the request to the first batch and to the first token, of the first choice that has one; from the
  // request until its last job ended. 0: not reached.
  double queue_ms = 0, first_ms = 0, total_ms = 0;
  std::string reason;     // finish_reason of each choice, each reason once: "stop", "stop+length"; or refused
  std::string_view code;  // of the error that refused or ended it; empty: there is none
};

// key=value pairs: `id=… key=… route=… model=… in=20 out=50 cached=0 queue=0.4ms first=12ms … reason=stop`.
std::string as_text(const request_record& r);
// Members of a JSON object, without its braces.
std::string as_json_members(const request_record& r);

// Witnesses the jobs of a request of `from` over `route`, a constant, and gives server_options::on_request
// their record. Null: nobody wants records.
std::shared_ptr<actors::job_witness> begin_record(const std::shared_ptr<server_state>& all,
                                                  const bearer& from, std::string_view route,
                                                  const std::string& request_id);

}  // namespace weir::net
