// user.h — a simulated client: sends one request after the other, on one connection at a time. With --follow,
// other connections of the same user read each answer too.
//
// Thread safety: the worker's thread.
// Invariants:
//   1. live() ends after the worker has set `stopping` and called hurry().
//   2. Every request that was begun is added to the worker's pool exactly once.
#pragma once

#include <memory>
#include <optional>

#include "net/load/answer_reader.h"
#include "net/load/connection.h"
#include "net/load/follower.h"

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
  // Whether an answer is under way whose connection can be dropped. To be resumed, the answer needs an id.
  bool streams() const;
  void drop();                  // closes the connection in the middle of an answer, if streams()
  void hurry();                 // ends all pending operations
  // Fails the request under way whose server has sent nothing for too long. To be called now and then.
  void end_silence(std::chrono::steady_clock::time_point now);

 private:
  struct taker {
    user* self;
    bool operator()(std::size_t n) { return self->take(n); }
  };

  task<void> sleep_until(std::chrono::steady_clock::time_point t);
  task<bool> connected();
  task<std::string> open_line();
  std::string silence() const;
  task<void> serve(request asked);
  task<void> exchange(request asked);
  task<void> send_and_listen(std::string words);
  bool can_go_on() const;
  task<bool> reconnected();
  task<void> abandon();
  task<void> await_followers();
  bool take(std::size_t n);
  void understand();
  std::string reply();
  bool reading() const;
  bool followed() const;
  void add_followers();
  std::size_t at_once() const;

  worker_state& shared_;
  const std::size_t number_;
  bool slow_ = false;
  timer wake_;
  std::optional<request> next_;
  connection to_;
  std::vector<std::unique_ptr<follower>> followers_;
  std::optional<answer_reader> answer_;   // while an answer is under way
  std::vector<frame> spare_;        // memory of the frames of the answer before
  std::string words_;               // to be sent as soon as the read has ended
  std::size_t read_ = 0;            // bytes of the latest read
  bool cut_off_ = false;            // this user has closed the connection during the answer, for good
  bool dropped_ = false;            // it has dropped the connection, and will resume
  // The server has to send something, and has sent the last thing then; unset: nobody waits for it.
  std::optional<std::chrono::steady_clock::time_point> silent_since_;
  bool too_silent_ = false;  // end_silence() has cut the connection
  bool listening_ = false;
  bool following_ = false;          // the followers know of the answer
  std::uint64_t cancel_after_ = 0;  // tokens after which the answer is cancelled; 0: never
  bool failed_ = false;             // the latest request failed or was refused
  std::string last_error_;
};

}  // namespace weir::load
