// job_feed.h — how a lane follows a job that it did not create, on whatever shard the job lives.
//
// A followed_job lives on the follower's shard, and a job_feed (in job_feed.cpp) on the job's shard, which
// may be the same. Messages between the two are posted. The followed_job asks for a piece of the job's log
// when the lane has used up the last one; the feed answers at once, or when the job has news. So a follower
// that does not read costs at most one piece of memory, and tokens are copied only for followers that read.
//
// Nobody knows on which shard a job lives: the question goes from shard to shard until one of them has it.
//
// Thread safety: the follower's shard.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/token_log.h"
#include "core/memory/account.h"
#include "net/hub.h"
#include "net/kept_jobs.h"

namespace weir::net {

class job_feed;

class followed_job : public std::enable_shared_from_this<followed_job> {
 public:
  // What a follower is told first.
  struct beginning {
    ws::follow_options how;
    std::string metadata;      // as in kept_job
    std::uint32_t head = 0;    // tokens that the job has by now
    std::string_view status;   // as in response.done, or in_progress; a constant
    core::time_point created;  // of the job
    std::shared_ptr<const core::tokenizer> tokenizer;  // of its model, for logprobs
    bool pause_on_lag = false;
    std::shared_ptr<hub> home;  // of the job's shard
  };

  // Asks for the job `id` after its first `after` tokens. `changed` is called on the shard after each answer.
  static std::shared_ptr<followed_job> open(hub& here, const core::job_id& id, const actors::principal& who,
                                            std::uint64_t after, const ws::follow_wishes& how,
                                            std::function<void()> changed);
  followed_job(std::function<void()> changed, std::shared_ptr<core::memory_account> memory)
      : changed_(std::move(changed)), memory_(std::move(memory)) {}
  ~followed_job();

  // At most one of the two is set, by the first answer.
  const std::optional<follow_refusal>& refused() const noexcept { return refused_; }
  const std::optional<beginning>& begun() const noexcept { return begun_; }

  // The latest piece: the tokens after the first base() tokens of the job.
  const actors::token_log& log() const noexcept { return log_; }
  std::uint32_t base() const noexcept { return base_; }
  // How the job ended; null as long as there are more pieces.
  const actors::outcome* ended() const noexcept { return ended_ ? &*ended_ : nullptr; }

  // The lane has shown the tokens up to `shown` and can show no more of those that came. Asks for the next
  // piece, unless it is on its way or there is none.
  void used_up(std::uint32_t shown);
  // The client has taken the tokens up to `seq`.
  void ack(std::uint32_t seq);
  void cancel();

 private:
  friend job_feed;
  void refuse(const follow_refusal& why);
  void begin(beginning b, std::uint64_t after);
  void take(actors::token_log piece, std::optional<actors::outcome> ended);
  template <class F>
  void ask_feed(F what);

  const std::function<void()> changed_;
  core::memory_hold memory_;  // of log_
  std::shared_ptr<job_feed> feed_;
  std::optional<follow_refusal> refused_;
  std::optional<beginning> begun_;
  actors::token_log log_;
  std::uint32_t base_ = 0;
  std::optional<actors::outcome> ended_;
  bool waiting_ = false;    // for a piece
  bool cancelled_ = false;  // before it had begun
};

}  // namespace weir::net
