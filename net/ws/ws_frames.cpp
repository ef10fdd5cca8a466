#include "net/ws/ws_frames.h"

#include <algorithm>

namespace weir::net {
namespace {

// Number of ended lanes whose ids are kept, so that a late cancel is ignored and is not an unknown id.
constexpr std::size_t remembered_lanes = 256;

}  // namespace

void ws_frames::say(std::string frame) {
  to_say_bytes_ += frame.size();
  to_say_.push_back(std::move(frame));
}

ws::lane* ws_frames::find_lane(const std::string& id) const noexcept {
  for (const auto& l : lanes_)
    if (l->id() == id) return l.get();
  return nullptr;
}

bool ws_frames::is_over(const std::string& id) const {
  return std::find(over_.begin(), over_.end(), id) != over_.end();
}

bool ws_frames::take(std::string& out, ws::scratch& s, bool with_lanes) {
  if (to_say_bytes_ > 0) {
    out += to_say_.front();
    to_say_bytes_ -= to_say_.front().size();
    to_say_.pop_front();
    return true;
  }
  for (std::size_t i = 0; i < lanes_.size() && with_lanes;) {
    const std::size_t at = (next_lane_ + i) % lanes_.size();
    const auto next = lanes_[at]->take(out, s);
    if (next == ws::lane::next::nothing) {
      ++i;
      continue;
    }
    next_lane_ = at + 1;
    if (next == ws::lane::next::left) {
      lane_over(at);
      i = 0;
      continue;
    }
    if (next == ws::lane::next::last_frame) lane_over(at);
    return true;
  }
  return false;
}

std::size_t ws_frames::backlog() const {
  std::size_t bytes = to_say_bytes_;
  for (const auto& l : lanes_) bytes += l->backlog();
  return bytes;
}

void ws_frames::lane_over(std::size_t at) {
  over_.push_back(lanes_[at]->id());
  if (over_.size() > remembered_lanes) over_.pop_front();
  lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(at));
  next_lane_ = at;
}

}  // namespace weir::net
