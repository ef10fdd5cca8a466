// job_feed.h — how a lane, or a stream of events, follows a job that it did not create, on whatever shard the
// job lives.
//
// A followed_job lives on the follower's shard, and a job_feed (in job_feed.cpp) on the job's shard, which
// may be the same. Messages between the two are posted. The followed_job asks for a piece of the job's log
// when its reader has used up the last one; the feed answers at once, or when the job has news. So a follower
// that does not read costs at most one piece of memory, and tokens are copied only for followers that read.
//
// Nobody knows on which shard a job lives: the question goes from shard to shard until one of them has it. If
// none has, and this process is a gateway of a fleet, other gateways may have had it: it is looked for there,
// and goes on at the follower's shard where it is found (actors/job_finder.h).
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

// What the events of an answer over HTTP say of its first job. All of it is known once the job is admitted.
struct admitted_job {
  core::job_id id;
  std::string model, fingerprint;
  std::vector<core::grammar::warning> warnings;  // of its constraint
  std::uint32_t prompt_tokens = 0;

  // REQUIRES: the job is running, or has been.
  static admitted_job of(const actors::job_stream& job);
};

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
    std::shared_ptr<const kept_answer> answer;  // as in kept_job
    std::shared_ptr<hub> home;  // of the job's shard
  };
  // What a follower that shows events is told once the job is admitted.
  struct admission {
    admitted_job job;
    std::shared_ptr<const core::tokenizer> tokenizer;  // of its model, for logprobs
    std::string prompt_text;       // as job_stream::prompt_text(), for a follower from the start; else empty
    std::uint64_t characters = 0;  // of the text before the first piece; counted where there are logprobs
  };

  // Asks for the job `id` after its first `after` tokens. `changed` is called on the shard after each answer.
  // `choices`: of the answer that the follower shows as events, among which it shares the room for pieces; 0:
  // it shows frames of this job alone. `in_passing`: as in kept_jobs::follow().
  static std::shared_ptr<followed_job> open(hub& here, const core::job_id& id, const actors::principal& who,
                                            std::uint64_t after, const ws::follow_wishes& how,
                                            std::function<void()> changed, std::size_t choices = 0,
                                            bool in_passing = false);
  followed_job(std::function<void()> changed, std::shared_ptr<core::memory_account> memory)
      : changed_(std::move(changed)), memory_(std::move(memory)) {}
  ~followed_job();

  // One of the two is set by the first answer. A follower that shows events is also refused after that, where
  // the job proves not to be admitted.
  const std::optional<follow_refusal>& refused() const noexcept { return refused_; }
  const std::optional<beginning>& begun() const noexcept { return begun_; }
  // Of a follower that shows events; comes after the beginning.
  const std::optional<admission>& admitted() const noexcept { return admitted_; }

  // From now on log() keeps all pieces. REQUIRES: as soon as it is opened.
  void keep_pieces() noexcept { keeps_pieces_ = true; }
  // The latest piece: the tokens after the first base() tokens of the job.
  const actors::token_log& log() const noexcept { return log_; }
  std::uint32_t base() const noexcept { return base_; }
  // How the job ended; null as long as there are more pieces.
  const actors::outcome* ended() const noexcept { return ended_ ? &*ended_ : nullptr; }

  // The reader has shown the tokens up to `shown` and can show no more of those that came. Asks for the next
  // piece, unless it is on its way or there is none.
  void used_up(std::uint32_t shown);
  // The client has taken the tokens up to `seq`.
  void ack(std::uint32_t seq);
  void cancel();

 private:
  friend job_feed;
  // `text`: the refusal's message where it is no constant.
  void refuse(const follow_refusal& why, std::string text);
  void begin(beginning b, std::uint64_t after);
  void admit(admission how);
  void take(actors::token_log piece, std::optional<actors::outcome> ended);
  template <class F>
  void ask_feed(F what);

  const std::function<void()> changed_;
  core::memory_hold memory_;  // of log_ and the prompt's text
  std::shared_ptr<job_feed> feed_;
  std::optional<follow_refusal> refused_;
  std::string refusal_text_;
  std::optional<beginning> begun_;
  std::optional<admission> admitted_;
  actors::token_log log_;
  std::uint32_t base_ = 0;
  std::optional<actors::outcome> ended_;
  bool waiting_ = false;    // for a piece
  bool cancelled_ = false;  // before it had begun
  bool keeps_pieces_ = false;
};

}  // namespace weir::net
