// http_state.h — where an HTTP connection stands: between requests, in one, or watching the client of a
// completion; the deadline of the read under way; and whether the connection goes on after the answer.
//
// Pure: time is passed in, and http_session (net/http/http_session.h) reads and writes. Used on one thread.
//
//   first_header ─▶ request ─▶ next_header ─▶ request …         header_read(), await_request()
//   request ─▶ watch ─▶ last_watch ─▶ request                   watch(), end_watch(), watch_read_ended()
//   request, watch, last_watch ─▶ client_gone                   client_left(), watch_read_ended()
//
// Invariants:
//   1. client_gone is left by nothing, and goes_on() is false there.
//   2. While the phase is watch or last_watch, a read is pending that only notices the client's end.
#pragma once

#include <chrono>
#include <optional>

namespace weir::net {

class http_state {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  enum class phase {
    first_header,  // waits for the header of the connection's first request
    next_header,   // waits for the header of a later request; a drain may close the connection here
    request,       // reads the body of a request, or answers the request
    watch,         // a completion runs
    last_watch,    // the answer of a completion is ready; the read of the watch is being cancelled
    client_gone,   // the client left while its completion ran
  };
  phase at() const noexcept { return at_; }

  // ---- requests

  // A request is awaited. The connection ends after that request unless its header says otherwise.
  void await_request() noexcept {
    if (at_ == phase::request) at_ = phase::next_header;
    keep_alive_ = false;
  }
  // A header has been read, or will never be.
  void header_read() noexcept { at_ = phase::request; }

  // What the header asks for.
  void keep_alive(bool wanted) noexcept { keep_alive_ = wanted; }
  void end_after_answer() noexcept { keep_alive_ = false; }
  // Another request may follow the answer.
  bool goes_on() const noexcept { return keep_alive_ && at_ != phase::client_gone; }

  // ---- the deadline of a read

  // A read, of one or more operations, begins; `deadline` is its end.
  void read_begins(time_point deadline) noexcept {
    read_by_ = deadline;
    late_ = false;
  }
  void read_ends() noexcept { read_by_.reset(); }
  // Called as time passes. True: the operation under way has to be cancelled. That is true at each call until
  // read_ends(): an operation that has just completed cannot be cancelled, but the one after it can.
  bool overdue(time_point now) noexcept {
    if (!read_by_ || now < *read_by_) return false;
    late_ = true;
    return true;
  }
  // The deadline of the last read passed while the read was under way.
  bool late() const noexcept { return late_; }

  // ---- the watch over the client of a completion

  // A read of the watch is pending, the first one or a further one. REQUIRES: request or watch.
  void watch() noexcept { at_ = phase::watch; }
  // The answer is ready. True: a read is pending; cancel it and wait while the phase is last_watch.
  bool end_watch() noexcept {
    if (at_ != phase::watch) return false;
    at_ = phase::last_watch;
    return true;
  }
  // How a read of the watch ended. `said_all`: the client has ended its side, and may still wait for the
  // answer. `failed`: the client reset the connection, or left.
  enum class watch_read { bytes_came, said_all, cancelled, failed };
  // The pending read has ended. True: the watch goes on, so read again, or wait for a reset where the client
  // has said all. The system reports a reset once: a read that fails counts even where it is the one that is
  // being cancelled.
  bool watch_read_ended(watch_read how) noexcept {
    if (at_ == phase::last_watch && how != watch_read::failed) {
      at_ = phase::request;
      return false;
    }
    if (how == watch_read::bytes_came || how == watch_read::said_all) return true;
    at_ = phase::client_gone;
    return false;
  }
  // The client is gone, or cannot be watched any longer.
  void client_left() noexcept { at_ = phase::client_gone; }

 private:
  phase at_ = phase::first_header;
  bool keep_alive_ = false;
  bool late_ = false;
  std::optional<time_point> read_by_;
};

}  // namespace weir::net
