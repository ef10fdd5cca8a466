// user.h — a simulated client: sends one request after the other, on one connection at a time.
//
// Thread safety: the worker's thread.
// Invariants:
//   1. live() ends after the worker has set `stopping` and called hurry().
//   2. Every request that was begun is added to the worker's pool exactly once.
#pragma once

#include <optional>

#include "net/load/answer_reader.h"
#include "net/load/line.h"
#include "net/load/worker_state.h"

namespace weir::load {

struct request {
  std::uint64_t index = 0;
  micros at = 0;  // when it is to be sent
};

class user {
 public:
  user(worker_state& shared, std::size_t number);

  task<void> live();
  void give(const request& r);  // open loop: the next request. REQUIRES: the user is idle or new
  bool streams() const { return answer_.has_value(); }
  void drop();                  // closes the connection in the middle of an answer
  void hurry();                 // ends all pending operations

 private:
  task<void> sleep_until(std::chrono::steady_clock::time_point t);
  task<bool> connected();
  task<std::string> shake_hands();
  task<void> serve(request asked);
  task<void> exchange(request asked);
  std::string reply();
  void understand(micros at);
  std::size_t at_once() const;
  void hang_up();

  worker_state& shared_;
  const std::size_t number_;
  bool slow_ = false;
  timer wake_;
  std::optional<request> next_;
  std::optional<line> line_;
  std::optional<talk> talk_;
  std::optional<answer_reader> answer_;   // while an answer is under way
  bool cut_off_ = false;            // this user has closed the connection during the answer
  std::uint64_t cancel_after_ = 0;  // tokens after which the answer is cancelled; 0: never
  bool failed_ = false;             // the latest request failed or was refused
  std::string last_error_;
  char bytes_[4096];
};

}  // namespace weir::load
