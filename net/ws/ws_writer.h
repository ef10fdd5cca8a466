// ws_writer.h — sends a WebSocket session's frames (net/ws/ws_frames.h) through its transport.
//
// write() sends frames until there is none left, the kernel has no more room, or a reader that is behind has
// got its share of the shard's time. The session calls write() whenever there may be something new, and
// send_rest() after the kernel has taken only a part of a frame.
//
// Thread safety: everything on the session's shard.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include "net/hub.h"
#include "net/ws/ws_frames.h"
#include "net/ws/ws_transport.h"

namespace weir::net {

class ws_writer {
 public:
  using error_code = boost::system::error_code;
  using time_point = std::chrono::steady_clock::time_point;

  // All three must outlive the writer.
  ws_writer(ws_frames& frames, ws_transport& way, hub& h) : frames_(frames), way_(way), counts_(h.counts()) {
    scratch_.ids = &h.ids();
    scratch_.clock = &h.server().service.clock();
  }

  enum class outcome {
    said_all,  // nothing is left to send
    full,      // the kernel took only a part of a frame; the caller must call send_rest()
    enough,    // there may be more; the caller must call again, after the shard's other work
    busy       // nothing was done: a frame is being sent, or memory was short before
  };
  // Sends frames; those of lanes only `with_lanes`. Throws bad_alloc; every later call then returns busy.
  outcome write(bool with_lanes);
  // About how many bytes one call of write() sends.
  static constexpr std::size_t share_bytes = 32 * 1024;
  // Sends the rest of the frame, and then calls then(ec), but not from inside this call. `then` must keep the
  // writer alive.
  void send_rest(std::function<void(const error_code&)> then);

  // After said_all: when a token is due that its lane's pace holds back; nullopt: none is held back.
  std::optional<core::time_point> next_due() const noexcept { return scratch_.due; }

  // When the current frame began to wait for the kernel; nullopt: no frame waits.
  std::optional<time_point> waits_since() const noexcept { return waits_since_; }

 private:
  bool choose(bool with_lanes);
  void frame_left();

  ws_frames& frames_;
  ws_transport& way_;
  shard_counts& counts_;

  text_frame frame_;       // the frame being sent
  std::string_view rest_;  // the part of frame_ that the kernel has not taken
  bool writing_ = false;   // a frame is being made or sent
  ws::scratch scratch_;
  std::optional<time_point> waits_since_;
};

}  // namespace weir::net
