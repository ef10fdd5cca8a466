// ws_writer.h — sends the frames of a WebSocket session: the session's own, then those of its lanes.
//
// write() sends frames until there is none left or the kernel has no more room. The session calls write()
// whenever there may be something new, and send_rest() after the kernel has taken only a part of a frame.
//
// Thread safety: everything on the session's shard.
//
// Invariants:
//   1. A lane's frame is made when it can be sent. It has everything that was queued for the lane until then.
//   2. The session's own frames are sent before those of any lane, in the order of say(). The lanes are
//      served round-robin.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/hub.h"
#include "net/ws_lane.h"
#include "net/ws_transport.h"

namespace weir::net {

class ws_writer {
 public:
  using error_code = boost::system::error_code;
  using time_point = std::chrono::steady_clock::time_point;

  // `way` and `all` must outlive the writer.
  ws_writer(ws_transport& way, server_state& all) : way_(way), all_(all) {}

  // ---- what is to be sent

  // Queues a frame of the session's own. `frame`: the payload, one JSON object.
  void say(std::string frame);
  void open_lane(std::unique_ptr<ws::lane> l) { lanes_.push_back(std::move(l)); }
  const std::vector<std::unique_ptr<ws::lane>>& lanes() const noexcept { return lanes_; }
  void drop_lanes() { lanes_.clear(); }
  // Whether a lane with this id was among the last 256 that ended.
  bool is_over(const std::string& id) const;
  std::size_t backlog();  // bytes that wait for the socket

  // ---- sending

  enum class outcome {
    said_all,  // nothing is left to send
    full,      // the kernel took only a part of a frame; the caller must call send_rest()
    busy       // nothing was done: a frame is being sent, or memory was short before
  };
  // Sends frames; those of lanes only `with_lanes`. Throws bad_alloc; every later call then returns busy.
  outcome write(bool with_lanes);
  // Sends the rest of the frame, and then calls then(ec), but not from inside this call. `then` must keep the
  // writer alive.
  void send_rest(std::function<void(const error_code&)> then);

  // After said_all: when a token is due that its lane's pace holds back; nullopt: none is held back.
  std::optional<core::time_point> next_due() const noexcept { return scratch_.due; }

  // When the current frame began to wait for the kernel; nullopt: no frame waits.
  std::optional<time_point> waits_since() const noexcept { return waits_since_; }

 private:
  bool choose(bool with_lanes);
  void lane_over(std::size_t at);
  void frame_left();

  ws_transport& way_;
  server_state& all_;

  std::deque<std::string> to_say_;  // the session's own frames
  std::size_t to_say_bytes_ = 0;
  std::vector<std::unique_ptr<ws::lane>> lanes_;
  std::size_t next_lane_ = 0;     // the lane that is asked first
  std::deque<std::string> over_;  // ids of the last lanes that ended

  text_frame frame_;       // the frame being sent
  std::string_view rest_;  // the part of frame_ that the kernel has not taken
  bool writing_ = false;   // a frame is being made or sent
  ws::scratch scratch_;
  std::optional<time_point> waits_since_;
};

}  // namespace weir::net
