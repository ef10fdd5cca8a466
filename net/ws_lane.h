// ws_lane.h — one response on a socket: a cursor into a job's log, and the frame that comes next.
//
// Used on the session's shard. The frames of a lane are created, deltas, done, in this order. A job that was
// refused has one error instead, and a job that was cancelled before a model took it has only done.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/job_stream.h"
#include "net/ws_protocol.h"

namespace weir::net::ws {

// Buffers for making frames. They are kept, so that they need not grow again.
struct scratch {
  std::string text;
  std::vector<core::token_id> ids;
  std::optional<core::time_point> sampled;  // when the frame's last token was sampled; nullopt: it has none
};

class lane {
 public:
  lane(response_create c, std::shared_ptr<actors::job_stream> job);

  const std::string& id() const noexcept { return id_; }
  const std::string& response_id() const noexcept { return response_id_; }
  bool cancel_on_disconnect() const noexcept { return cancel_on_disconnect_; }
  const std::shared_ptr<actors::job_stream>& job() const noexcept { return job_; }

  enum class next { nothing, frame, last_frame };
  // Appends the next frame, which has everything that is queued for this lane now. After last_frame there is
  // no other.
  next take(std::string& out, scratch& s);

  // Number of bytes of text that wait for the socket.
  std::size_t backlog(scratch& s) const;

 private:
  bool take_delta(std::string& out, scratch& s, bool ended);

  std::string id_, response_id_;
  std::shared_ptr<actors::job_stream> job_;
  std::vector<std::string> ignored_;
  std::uint32_t shown_ = 0;
  bool cancel_on_disconnect_, timing_, token_ids_;
  bool created_ = false;
};

}  // namespace weir::net::ws
