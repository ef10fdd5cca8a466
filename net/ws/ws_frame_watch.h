// ws_frame_watch.h — the bounds of a WebSocket's incoming frames, judged from frame headers before Beast sees
// them.
//
// Beast reserves what a frame header announces, and skips empty fragments without telling anybody. The watch
// reads every frame header (RFC 6455, section 5.2) on its way from the socket to Beast. A message that
// announces more bytes than the limit is refused at the header that exceeds the limit. Frames of all kinds,
// fragments and pings included, are counted against a rate. Everything else that RFC 6455 forbids is left to
// Beast.
//
// Pure: no I/O; time is passed in. Used on one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/access/rate.h"

namespace weir::net {

class ws_frame_watch {
 public:
  enum class verdict { fine, too_big, too_many };

  // `most_bytes`: payload bytes of one message, all of its frames together.
  ws_frame_watch(std::uint64_t most_bytes, rate_meter frames) : most_bytes_(most_bytes), frames_(frames) {}

  // How many of `bytes`, which follow all bytes seen before, may be passed on. Fewer than all: a frame was
  // refused, and found() says why. The bytes after a refusal must not be passed on, and admit() must not be
  // called again.
  std::size_t admit(std::span<const unsigned char> bytes, rate_meter::time_point now);
  verdict found() const noexcept { return found_; }

  void set_most_bytes(std::uint64_t most) noexcept { most_bytes_ = most; }

 private:
  static constexpr std::size_t longest_header = 14;  // opcode, length, 64 bits of length, masking key

  std::size_t header_size() const noexcept;  // of the header begun in header_; 2 until the length is known
  std::uint64_t payload_size() const noexcept;
  verdict judge(rate_meter::time_point now);

  std::uint64_t most_bytes_;
  rate_meter frames_;
  verdict found_ = verdict::fine;
  std::array<unsigned char, longest_header> header_{};
  std::size_t header_bytes_ = 0;     // number of bytes in header_
  std::uint64_t payload_left_ = 0;   // bytes of the current frame's payload that have not arrived
  std::uint64_t message_bytes_ = 0;  // payloads announced so far by the frames of the current message
};

}  // namespace weir::net
