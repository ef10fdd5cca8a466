// ws_writer.h — what leaves a WebSocket session: what it says itself, then its lanes' frames, one frame at a
// time.
//
// It chooses and sends until there is nothing to say, or the kernel has no more room; the session asks it to
// whenever there may be news, and tells it to go on when there is room again.
//
// Thread safety: everything on the session's shard.
//
// Invariants:
//   1. A frame is chosen when it can leave: what is queued for a lane until then goes into one.
//   2. Whole frames leave in the order in which they were said, and before any lane's. The lanes are served
//      round-robin.
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

  // Both must outlive it.
  ws_writer(ws_transport& way, server_state& all) : way_(way), all_(all) {}

  // ---- what there is to say
  void say(std::string frame);
  void open_lane(std::unique_ptr<ws::lane> l) { lanes_.push_back(std::move(l)); }
  const std::vector<std::unique_ptr<ws::lane>>& lanes() const noexcept { return lanes_; }
  void drop_lanes() { lanes_.clear(); }
  // A lane of this id is over, and not long ago.
  bool is_over(const std::string& id) const;
  std::size_t backlog();  // bytes that wait for the socket

  // ---- sending Busy: in the middle of a frame, or past the last one. Full: the kernel took a part of one,
  // and send_rest() has to follow. It throws where there is no memory; it is busy for good then.
  enum class outcome { said_all, full, busy };
  outcome write(bool with_lanes);
  // then(ec) follows when the rest has left, not from inside this call; it has to keep the writer alive.
  void send_rest(std::function<void(const error_code&)> then);
  void fall_silent() { writing_ = true; }  // for good

  // Since when the frame that was chosen last has waited for the kernel, if it does.
  std::optional<time_point> waits_since() const noexcept { return waits_since_; }

 private:
  bool choose(bool with_lanes);
  void lane_over(std::size_t at);
  void frame_left();

  ws_transport& way_;
  server_state& all_;

  std::deque<std::string> to_say_;  // whole frames that belong to no lane
  std::size_t to_say_bytes_ = 0;
  std::vector<std::unique_ptr<ws::lane>> lanes_;
  std::size_t next_lane_ = 0;     // the lane that is asked first
  std::deque<std::string> over_;  // lanes, by id

  text_frame frame_;       // being written
  std::string_view rest_;  // of it, which the kernel has not taken
  bool writing_ = false;   // a frame is chosen or on its way, or the last one was
  ws::scratch scratch_;
  std::optional<time_point> waits_since_;
};

}  // namespace weir::net
