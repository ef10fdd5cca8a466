// ws_closing.h — why and how a WebSocket session closes: its close code, what is still written before the
// close frame, and how long the client has to end the connection.
//
// Pure: time is passed in, and the session (net/ws/ws_session.h) reads, writes and closes the socket. A
// client from which nothing arrives, pings included, is not judged here: Beast ends it. Used on one thread.
//
//   open ─▶ flushing ─▶ last_word       close(), no_lane_left(), tick(), then all_written()
//   open, flushing ─▶ peer_ends         peer_ends()
//   any phase ─▶ hung_up                hang_up(), tick(), too_slow()
//
// Invariants:
//   1. In open there is no close code. Once there is one, it does not change.
//   2. hung_up is left by nothing.
//   3. all_written() returns a close code at most once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "net/limits.h"

namespace weir::net {

// How a session ended, as docs/wire.md lists it and /v1/stats counts it. no_status and abnormal are never
// sent (RFC 6455, section 7.4.1).
enum class close_code : std::uint16_t {
  going_away = 1001,
  protocol_fault = 1002,
  no_status = 1005,
  abnormal = 1006,
  bad_payload = 1007,
  too_big = 1009,
  our_fault = 1011,
  overloaded = 1013,
  bad_key = 4401,
  forbidden = 4403,
  not_authenticated = 4408,
  too_many_messages = 4429,
  slow_consumer = 4440,
  too_old = 4441,
};

class ws_closing {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  // `l` must outlive this object.
  ws_closing(const server_limits& l, time_point opened) : limits_(l), opened_(opened) {}

  enum class phase {
    open,       // the session says and writes everything it has
    flushing,   // what the session has said is still written, frames of lanes are not
    last_word,  // the close frame is the last that is sent; the client has to end the connection
    peer_ends,  // the client sent its close frame or broke the protocol: Beast answers and ends the session
    hung_up,    // the socket is closed
  };
  phase at() const noexcept { return at_; }
  bool writes() const noexcept { return at_ == phase::open || at_ == phase::flushing; }
  // Why the server ends the session. None: it does not, or it only closed a socket that had failed.
  std::optional<close_code> code() const noexcept { return code_; }
  // Messages of the client still have an effect.
  bool listens() const noexcept { return !code_; }

  // ---- the server ends the session

  // True: this is the reason. Write what is left, then ask all_written(). False: there was a reason before.
  bool close(close_code why) noexcept {
    if (code_) return false;
    code_ = why;
    if (at_ == phase::open) at_ = phase::flushing;
    return true;
  }
  // Nothing waits to be written. A code: send a close frame with it.
  std::optional<close_code> all_written() noexcept {
    if (at_ != phase::flushing) return std::nullopt;
    at_ = phase::last_word;
    return code_;
  }

  // The server drains: the session ends when no lane is left. True: say session.closing.
  bool drain() noexcept {
    draining_ = true;
    return announce();
  }
  // No lane is open. True: as with close().
  bool no_lane_left() noexcept { return draining_ && close(close_code::going_away); }

  // ---- others end the session

  void peer_ends() noexcept {
    if (writes()) at_ = phase::peer_ends;
  }
  // The socket is being closed.
  void hang_up() noexcept { at_ = phase::hung_up; }

  // ---- as time passes

  enum class todo {
    nothing,
    announce,  // say session.closing: the greatest age is near
    write,     // the session ends: write what is left, then ask all_written()
    hang_up,   // close the socket
  };
  // `let_in`: the client has been authenticated. `waits_since`: since when a frame has waited for the kernel.
  // A session that ends has as long as a write or a handshake may take, counted from the first tick that
  // finds it ending: the client can still take what was said, and read that it is over.
  todo tick(time_point now, bool let_in, std::optional<time_point> waits_since) noexcept {
    if (at_ != phase::open) return overdue(now, waits_since.has_value()) ? todo::hang_up : todo::nothing;
    const auto age = now - opened_;
    if (!let_in && age > limits_.authenticate) return end(close_code::not_authenticated);
    if (age > limits_.max_age) return end(close_code::too_old);
    if (age > limits_.max_age - limits_.closing_notice && announce()) return todo::announce;
    return todo::nothing;
  }
  // True: the client does not take what is sent to it. Close the socket, and drop what the kernel holds.
  // `backlog`: bytes that wait for the socket. REQUIRES: open.
  bool too_slow(time_point now, time_point waits_since, std::size_t backlog) noexcept {
    if (now - waits_since <= limits_.write_time && backlog <= limits_.backlog_bytes) return false;
    code_ = close_code::slow_consumer;
    at_ = phase::hung_up;
    return true;
  }

 private:
  // True: session.closing has not been said, and can be.
  bool announce() noexcept { return at_ == phase::open && !std::exchange(announced_, true); }
  todo end(close_code why) noexcept {
    close(why);
    return todo::write;
  }
  bool overdue(time_point now, bool frame_waits) noexcept {
    if (!ending_since_) ending_since_ = now;
    if (now - *ending_since_ <= (frame_waits ? limits_.write_time : limits_.handshake)) return false;
    at_ = phase::hung_up;
    return true;
  }

  const server_limits& limits_;
  const time_point opened_;
  phase at_ = phase::open;
  std::optional<close_code> code_;
  bool announced_ = false;  // session.closing was said
  bool draining_ = false;
  std::optional<time_point> ending_since_;
};

}  // namespace weir::net
