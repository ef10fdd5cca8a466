// follower.h — a further reader of jobs that a user asks for: resumes each from its beginning, on its own
// connection.
//
// Thread safety: the worker's thread. Invariant: live() ends after the worker has set `stopping` and called
// hurry().
#pragma once

#include "net/load/answer_reader.h"
#include "net/load/connection.h"

namespace weir::load {

class follower {
 public:
  // `owner`: cancelled whenever a job is over.
  follower(worker_state& shared, timer& owner)
      : shared_(shared), owner_(owner), wake_(shared.io), to_(shared) {}

  task<void> live();
  // Reads job `response_id` of request `index`. REQUIRES: not busy().
  void follow(std::uint64_t index, std::string response_id);
  bool busy() const { return busy_; }
  void let_go(std::string why);  // ends the job as failed; without a reason: as cut
  void hurry();
  // The record of the latest job. Its ending is `cut` if the follower did not see the job's own ending.
  // REQUIRES: not busy(), and a job was followed.
  const stream_record& record() { return answer_->record(); }

 private:
  struct taker {
    follower* self;
    bool operator()(std::size_t n) { return self->take(n); }
  };

  task<void> read_along();
  bool take(std::size_t);

  worker_state& shared_;
  timer& owner_;
  timer wake_;
  connection to_;
  std::optional<answer_reader> answer_;
  std::string response_id_, words_;
  bool busy_ = false, gone_ = false;
};

}  // namespace weir::load
