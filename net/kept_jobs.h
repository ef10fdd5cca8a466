// kept_jobs.h — the jobs of one shard that outlive their client: who follows each job, and how long a job is
// kept. All jobs of WebSockets are here, and of those over HTTP the ones whose on_disconnect is "continue".
//
// A job is kept from its creation. Its followers are the lanes and the streams of events of any connection on
// any shard (net/job_feed.h). What happens when the last follower leaves:
//   - A job that runs is cancelled: at once if the client asked for it, else when the grace is over
//     (client_settings::detach_grace) and nobody has followed it again.
//   - A job that has ended stays for client_settings::retain, so that a client can still read its answer.
//     Ended jobs of all shards together take at most client_settings::retain_mb, and none is kept while
//     clients use over half of their memory account (core/memory/account.h). A shard that finds more drops
//     its oldest ended jobs.
//
// A job with on_lag "pause" is paused while every follower lags. A follower that has a window lags once the
// tokens that it has not acknowledged are as many as its window. The job goes on when the lag of one follower
// has halved, when a follower without a window joins, when all have left, or after a minute. After that
// minute, it is not paused again before the lag has halved.
//
// Thread safety: the shard's thread.
//
// Invariants:
//   1. A job without followers is in detached_ or in ended_. Both lists name records of jobs_.
//   2. server_state::retained_bytes is the sum of `bytes` of the jobs in ended_, over all shards.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "actors/job_stream.h"
#include "actors/request.h"
#include "net/protocol/ws_protocol.h"

namespace weir::net {

struct server_state;
struct kept_answer;

// A job and what its client asked of the server beside it. Constant.
struct kept_job {
  std::shared_ptr<actors::job_stream> stream;
  actors::principal owner;
  ws::follow_options as_created;  // for lanes that ask for nothing else
  std::string metadata;           // JSON text; empty: none
  bool cancel_when_left = false;  // on_disconnect is "cancel"
  bool pause_on_lag = false;      // on_lag is "pause"
  // Somebody keeps its ending: a job whose grace is over is cancelled first, and forgotten once it has ended.
  bool ending_is_kept = false;
  // The answer over HTTP whose first choice the job is (net/http/kept_answer.h); else null.
  std::shared_ptr<const kept_answer> answer = nullptr;
};

// Why a job cannot be followed. All views are constants.
struct follow_refusal {
  std::string_view code;  // as in docs/wire.md
  std::string_view message, param;
};
inline constexpr follow_refusal no_such_job{"not_found", "there is no such response", "response_id"};
// Of jobs that are looked for in a fleet (net/job_feed.cpp).
inline constexpr std::string_view not_resumable_code = "not_resumable", unreachable_fleet_code = "overloaded";
inline constexpr follow_refusal crowded_job{
    "too_many_jobs", "this response has as many followers as it may have", {}};

// Whether a job has ended here since the gateway ends: any other gateway of the fleet can go on with the job.
bool was_handed_over(const actors::outcome& how);
// Whether a job has ended here since another gateway of the fleet goes on with it, or can.
bool goes_on_elsewhere(const core::error& why);
bool goes_on_elsewhere(const actors::job_stream& job);

class kept_jobs : public std::enable_shared_from_this<kept_jobs> {
  struct record;

 public:
  static constexpr std::chrono::seconds longest_pause{60};

  // `all` must outlive this object.
  explicit kept_jobs(server_state& all);
  ~kept_jobs();

  // One follower of a job, until it is destroyed. An empty one, which was moved from, follows nothing.
  class follower {
   public:
    follower() = default;
    follower(follower&& o) noexcept
        : jobs_(std::move(o.jobs_)), of_(std::exchange(o.of_, nullptr)), me_(o.me_) {}
    follower& operator=(follower&& o) noexcept {
      std::swap(jobs_, o.jobs_);
      std::swap(of_, o.of_);
      std::swap(me_, o.me_);
      return *this;
    }
    ~follower();

    explicit operator bool() const noexcept { return of_ != nullptr; }
    const kept_job& job() const noexcept;  // REQUIRES: not empty; of ack(), too
    // The client has taken the tokens up to `seq`.
    void ack(std::uint32_t seq);

   private:
    friend kept_jobs;
    struct progress {
      std::uint32_t window, acked;
    };
    follower(std::shared_ptr<kept_jobs> j, std::shared_ptr<record> of, std::list<progress>::iterator me)
        : jobs_(std::move(j)), of_(std::move(of)), me_(me) {}

    std::shared_ptr<kept_jobs> jobs_;
    std::shared_ptr<record> of_;  // null: empty
    std::list<progress>::iterator me_;
  };

  // Keeps a new job, or one that has come back from another gateway. Its first follower is the connection
  // that created it, or brought it.
  follower keep(kept_job job);
  // Follows a job again, for a client that has seen `after` tokens. `in_passing`: it only looks how the job
  // stands, and is not refused where there are as many followers as there may be.
  std::variant<follower, follow_refusal> follow(const core::job_id& id, const actors::principal& who,
                                                std::uint64_t after, const ws::follow_wishes& how,
                                                bool in_passing = false);

  // Drops the jobs whose time is over.
  void tick();
  // Drops all jobs without followers.
  void release();

 private:
  struct record {
    kept_job job;
    std::list<follower::progress> followers;
    core::time_point leaves_at{};  // of a job without followers
    std::uint64_t bytes = 0;       // of a job in ended_
    bool paused = false;           // it was paused, and the lag has not halved since
    std::list<record*> node;       // has this record, unless detached_ or ended_ has
  };
  using record_ptr = std::shared_ptr<record>;

  void left(record& r, std::list<follower::progress>::iterator who) noexcept;
  void pause_or_resume(record& r);
  void retain(record& r) noexcept;
  void drop_oldest() noexcept;
  void forget(record& r, bool was_resumable) noexcept;
  bool room_is_over() const noexcept;

  server_state& all_;
  std::unordered_map<core::job_id, record_ptr, core::job_id_hash> jobs_;
  std::list<record*> detached_;  // running jobs that had no follower at the last tick, or since
  std::list<record*> ended_;     // ended jobs that had no follower, the oldest first
  // The last jobs that can no longer be resumed: their clients are told so. A ring; its size is constant.
  std::vector<std::pair<core::job_id, actors::principal>> expired_;
  std::size_t expired_count_ = 0;  // so far
};

}  // namespace weir::net
