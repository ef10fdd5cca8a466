// ws_lane.h — one response on a socket: a cursor into a job's log, and the frame that comes next.
//
// A lane that created its job reads the log of the job's stream, which lives on the session's shard. A lane
// that resumed a job reads the pieces that a followed_job (net/job_feed.h) gets.
//
// The frames of a lane are created or resumed, deltas, done, in this order. Where the job waits for its
// model, created comes at once, and loaded once the job is admitted. A job that was refused, or cannot be
// followed, has one error instead, and a job that was cancelled before a model took it has only done. A job
// that a gateway of a fleet has handed over has no done here.
//
// Used on the session's shard.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/job_stream.h"
#include "net/job_feed.h"
#include "net/kept_jobs.h"
#include "net/protocol/ws_protocol.h"
#include "net/ws/token_pacer.h"

namespace weir::net::ws {

// What a lane needs, and what it tells, when it makes a frame.
struct scratch {
  std::vector<core::token_id>* ids = nullptr;  // a buffer; set by the caller
  const core::clock* clock = nullptr;          // the service's; set by the caller
  std::vector<actors::part_piece> parts;       // a buffer
  // Since when the frame's last token could have left: since it was sampled, or since the lane's window or
  // pace let it go. nullopt: the frame has no token, or its delay says nothing of this server.
  std::optional<core::time_point> ready;
  // The earliest time at which a token is due in an asked lane with pace "even"; nullopt: none waits.
  std::optional<core::time_point> due;
  bool resumed = false;      // the frame says that a lane resumed its job
  std::string_view refused;  // the frame says that a lane has no job: its error code, a constant
};

class lane {
 public:
  // A lane that created its job, which is on the session's shard.
  lane(response_create c, kept_jobs::follower job);
  // A lane that resumes a job.
  lane(response_resume r, std::shared_ptr<followed_job> job);

  const std::string& id() const noexcept { return id_; }
  const std::string& response_id() const noexcept { return response_id_; }

  // left: nothing was appended, and nothing will be. The job goes on at another gateway, where the client
  // resumes it once this connection has ended.
  enum class next { nothing, frame, last_frame, left };
  // Appends the next frame, with everything that is queued for this lane and allowed by its window and its
  // pace. After last_frame there is no other.
  next take(std::string& out, scratch& s);

  // The client has taken the tokens up to `seq`. Returns whether they have been sent. A smaller number than
  // before has no effect. `now`: on the service's clock.
  bool ack(std::uint64_t seq, core::time_point now);
  // Ends the job, if it has not ended, and the lane's window: the tokens that there are, and the end, leave.
  // The caller asks for frames afterwards.
  void cancel();

  // Number of bytes of text that wait for the socket, without what the window holds and what a feed has.
  std::size_t backlog() const;

 private:
  // The job as this lane has it now. `log` has the tokens after the first `base` of them.
  struct picture {
    const actors::token_log& log;
    std::uint32_t base;
    const actors::outcome* ended;  // null: more tokens may come
    std::uint32_t published() const { return base + log.whole(); }
  };
  picture look() const;
  next begin(std::string& out, scratch& s);
  bool take_delta(std::string& out, scratch& s, const picture& job);
  bool window_is_over(const picture& job) const;
  std::uint32_t in_window(const picture& job) const;
  std::uint32_t may_send(scratch& s, const picture& job);
  std::optional<core::time_point> ready_since(std::int64_t at_us, std::uint32_t to, const picture& job) const;
  lane_names names() const;

  // What every frame needs comes first: the lanes of thousands of clients fit no cache.
  std::uint32_t shown_ = 0, acked_ = 0;
  bool told_loading_ = false;               // created has been taken, and says that the model is loading
  bool begun_ = false;                      // created or resumed has been taken; then log_ is not null
  const actors::token_log* log_ = nullptr;  // of the job, or of resumed_
  bool held_ = false;                       // by the window, when the lane was last asked
  bool gave_up_ = false;                    // the client has cancelled the job here: nothing is held any more
  core::time_point created_;                // of the job
  core::time_point opened_at_{};            // when an ack last let held tokens go
  const actors::job_stream* stream_;        // of a lane that created its job; else null
  std::shared_ptr<followed_job> resumed_;   // of a lane that resumed a job; else null
  follow_options how_;
  std::uint32_t padding_ = 0;  // state of the generator of paddings' lengths
  std::string id_, response_id_;
  token_pacer pacer_;
  kept_jobs::follower own_;  // of a lane that created its job
  std::vector<std::string> ignored_;
  std::shared_ptr<const core::tokenizer> tokenizer_;  // of the model; null where deltas have no logprobs
};

}  // namespace weir::net::ws
