// user.h — one of the streams: one connection after the other, one request after the other.
//
// Thread safety: the worker's thread. Invariants: once the worker is stopping and hurry() was called, live()
// comes to its end; every request that was begun is added to the pool of the worker once.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>

#include "net/load/answer_reader.h"
#include "net/load/line.h"
#include "net/load/worker_state.h"

namespace weir::load {

struct request {
  std::uint64_t index = 0;
  micros at = 0;  // when it is due
};

class user {
 public:
  user(worker_state& shared, std::size_t number);

  task<void> live();
  void give(const request& r);  // open loop. REQUIRES: it is idle, or new
  bool streams() const { return answer_.has_value(); }
  void drop();                  // hangs up in the middle of its stream
  void hurry();                 // ends whatever it waits for

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
  std::optional<answer_reader> answer_;   // while one is under way
  bool cut_off_ = false;            // it, by us
  std::uint64_t cancel_after_ = 0;  // tokens; 0: never
  bool failed_ = false;             // the last one did
  std::string last_error_;
  char bytes_[4096];
};

}  // namespace weir::load
