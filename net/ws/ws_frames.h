// ws_frames.h — the frames that a WebSocket session has to send: the session's own, then those of its lanes.
//
// Used on the session's shard.
//
// Invariants:
//   1. A lane's frame is made when it can be sent. It has everything that was queued for the lane until then.
//   2. The session's own frames are sent before those of any lane, in the order of say(). The lanes are
//      served round-robin.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "net/ws/ws_lane.h"

namespace weir::net {

class ws_frames {
 public:
  // Queues a frame of the session's own. `frame`: the payload, one JSON object.
  void say(std::string frame);

  void open_lane(std::unique_ptr<ws::lane> l) { lanes_.push_back(std::move(l)); }
  const std::vector<std::unique_ptr<ws::lane>>& lanes() const noexcept { return lanes_; }
  ws::lane* find_lane(const std::string& id) const noexcept;  // null: none is open
  // Whether a lane with this id was among the last 256 that ended.
  bool is_over(const std::string& id) const;
  void drop_lanes() { lanes_.clear(); }

  // Appends the next frame to `out`; those of lanes only `with_lanes`. Returns false if there is none.
  bool take(std::string& out, ws::scratch& s, bool with_lanes);
  std::size_t backlog() const;  // bytes that take() has not given yet

 private:
  void lane_over(std::size_t at);

  // What every frame needs comes first.
  std::vector<std::unique_ptr<ws::lane>> lanes_;
  std::size_t next_lane_ = 0;       // the lane that is asked first
  std::size_t to_say_bytes_ = 0;    // of to_say_; 0: it is empty
  std::deque<std::string> to_say_;  // the session's own frames
  std::deque<std::string> over_;    // ids of the last lanes that ended
};

}  // namespace weir::net
