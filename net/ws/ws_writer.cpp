#include "net/ws/ws_writer.h"

namespace weir::net {

ws_writer::outcome ws_writer::write(bool with_lanes) {
  if (writing_) return outcome::busy;
  writing_ = true;
  std::size_t sent = 0;
  while (sent < share_bytes && choose(with_lanes)) {
    const std::string_view frame = frame_.finish();
    rest_ = way_.try_write(frame);
    if (!rest_.empty()) {
      waits_since_ = std::chrono::steady_clock::now();
      return outcome::full;
    }
    sent += frame.size();
    frame_left();
  }
  writing_ = false;
  return sent < share_bytes ? outcome::said_all : outcome::enough;
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
  scratch_.ready.reset();
  scratch_.due.reset();
  scratch_.resumed = false;
  scratch_.refused = {};
  const bool any = frames_.take(frame_.payload(), scratch_, with_lanes);
  if (scratch_.resumed) counts_.resumed.add();
  if (!scratch_.refused.empty()) counts_.rejected.add(scratch_.refused);
  return any;
}

void ws_writer::frame_left() {
  if (scratch_.ready) counts_.sampled_to_sent.add(scratch_.clock->now() - *scratch_.ready);
}

}  // namespace weir::net
