#include "net/ws_writer.h"

#include <algorithm>

namespace weir::net {
namespace {

// Number of ended lanes whose ids are kept, so that a late cancel is ignored and is not an unknown id.
constexpr std::size_t remembered_lanes = 256;

}  // namespace

void ws_writer::say(std::string frame) {
  to_say_bytes_ += frame.size();
  to_say_.push_back(std::move(frame));
}

bool ws_writer::is_over(const std::string& id) const {
  return std::find(over_.begin(), over_.end(), id) != over_.end();
}

std::size_t ws_writer::backlog() {
  std::size_t bytes = to_say_bytes_;
  for (const auto& l : lanes_) bytes += l->backlog();
  return bytes;
}

ws_writer::outcome ws_writer::write(bool with_lanes) {
  if (writing_) return outcome::busy;
  writing_ = true;
  while (choose(with_lanes)) {
    rest_ = way_.try_write(frame_.finish());
    if (!rest_.empty()) {
      waits_since_ = std::chrono::steady_clock::now();
      return outcome::full;
    }
    frame_left();
  }
  writing_ = false;
  return outcome::said_all;
}

void ws_writer::send_rest(std::function<void(const error_code&)> then) {
  way_.write(rest_, [this, then = std::move(then)](const error_code& ec) {
    if (!ec) {
      waits_since_.reset();
      frame_left();
      writing_ = false;
    }
    then(ec);
  });
}

// Writes the next frame to frame_; returns false if there is none.
bool ws_writer::choose(bool with_lanes) {
  frame_.clear();
  scratch_.sampled.reset();
  scratch_.due.reset();
  scratch_.now = all_.service.now();
  if (!to_say_.empty()) {
    frame_.payload() += to_say_.front();
    to_say_bytes_ -= to_say_.front().size();
    to_say_.pop_front();
    return true;
  }
  for (std::size_t i = 0; i < lanes_.size() && with_lanes; ++i) {
    const std::size_t at = (next_lane_ + i) % lanes_.size();
    const auto next = lanes_[at]->take(frame_.payload(), scratch_);
    if (next == ws::lane::next::nothing) continue;
    next_lane_ = at + 1;
    if (next == ws::lane::next::last_frame) lane_over(at);
    return true;
  }
  return false;
}

void ws_writer::lane_over(std::size_t at) {
  over_.push_back(lanes_[at]->id());
  if (over_.size() > remembered_lanes) over_.pop_front();
  lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(at));
  next_lane_ = at;
}

void ws_writer::frame_left() {
  if (scratch_.sampled) all_.sampled_to_sent.add(all_.service.now() - *scratch_.sampled);
}

}  // namespace weir::net
